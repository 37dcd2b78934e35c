"""Dispatch: where each policy sends jobs."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

import uringloop
from uringloop.scheduler import Scheduler, current_context


async def where() -> str:
    context = current_context()
    assert context is not None
    return context.name


def names(jobs: list[Any]) -> Counter[str]:
    return Counter(job.result(10) for job in jobs)


def test_round_robin_goes_round(engine: str) -> None:
    with Scheduler(3, stealing=False) as scheduler:
        assert set(names(scheduler.submit_many(where() for _ in range(30))).values()) == {10}


def test_least_loaded_avoids_the_busy(engine: str) -> None:
    with Scheduler(3, dispatch="least_loaded", stealing=False) as scheduler:
        goes_on = uringloop.Event()
        busy = [scheduler.submit(goes_on.wait(), context=scheduler.contexts[0]) for _ in range(50)]
        found = names(scheduler.submit_many(where() for _ in range(40)))
        goes_on.set()
        assert scheduler.contexts[0].name not in found
        assert len(found) == 2
        assert all(job.result(10) for job in busy)


@pytest.mark.parametrize("dispatch", ["round_robin", "least_loaded", "hash", "local"])
def test_key_decides_under_any_policy(engine: str, dispatch: str) -> None:
    with Scheduler(3, dispatch=dispatch) as scheduler:
        for key in range(5):
            assert len(names([scheduler.submit(where(), key=f"user {key}") for _ in range(10)])) == 1


def test_local_stays(engine: str) -> None:
    with Scheduler(3, dispatch="local") as scheduler:

        async def inner() -> set[str]:
            jobs = [scheduler.submit(where()) for _ in range(10)]
            return {await where(), *await asyncio.gather(*jobs)}

        for context in scheduler.contexts:
            assert scheduler.submit(inner(), context=context).result(10) == {context.name}
        assert len(names([scheduler.submit(where()) for _ in range(9)])) == 3


def test_callable_decides(engine: str) -> None:
    with Scheduler(3, dispatch=lambda contexts, key: contexts[-1], stealing=False) as scheduler:
        assert set(names(scheduler.submit_many(where() for _ in range(9)))) == {scheduler.contexts[2].name}


def test_unknown_policy_is_refused(engine: str) -> None:
    with pytest.raises(ValueError, match="dispatch must be"):
        Scheduler(2, dispatch="magic")
