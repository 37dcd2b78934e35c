"""The rows of two loops in two threads."""

import asyncio

import pytest

from benchmarks.workers import WORK, rate_of_workers


@pytest.mark.parametrize("work", WORK)
def test_each_kind_of_work_is_counted(work: str) -> None:
    assert rate_of_workers(asyncio.new_event_loop, 1, work, 0.01) > 0


def test_an_exception_in_a_thread_fails_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not a division by its rate."""

    def broken() -> None:
        raise OSError("the cause")

    monkeypatch.setitem(WORK, "broken", broken)  # type: ignore[arg-type]
    with pytest.raises(OSError, match="the cause"):
        rate_of_workers(asyncio.new_event_loop, 2, "broken", 0.01)
