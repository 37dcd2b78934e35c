"""Threads for calls that may block."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, wait

import pytest

from uringloop._core.engine import workers as module
from uringloop._core.engine.workers import FEW, Workers


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers("test")
    yield made
    made.shutdown()


def test_results_and_errors(workers: Workers) -> None:
    assert [workers.submit(pow, 2, n).result(10) for n in range(200)] == [2**n for n in range(200)]
    with pytest.raises(ZeroDivisionError):
        workers.submit(lambda: 1 / 0).result(10)
    assert len(workers._threads) <= FEW


def test_hanging_calls_do_not_hold_up_others(workers: Workers) -> None:
    release = threading.Event()
    stuck = [workers.submit(release.wait) for _ in range(FEW + 3)]
    assert workers.submit(int, "7").result(30) == 7
    assert not any(future.done() for future in stuck)
    release.set()
    assert len(wait(stuck, 30).not_done) == 0


def test_a_burst_of_short_jobs_starts_few_threads(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 30)
    futures = [workers.submit(int, n) for n in range(2000)]
    assert [future.result(30) for future in futures] == list(range(2000))
    assert len(workers._threads) <= FEW


def test_threads_end_when_there_is_nothing_to_do(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEEP", 0.01)
    for n in range(20):
        assert workers.submit(int, n).result(30) == n
    threads = list(workers._threads)
    for thread in threads:
        thread.join(30)
    assert workers._threads == set()
    assert workers.submit(int, 1).result(30) == 1


def test_shutdown_drops_what_has_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 30)
    workers = Workers("test")
    release = threading.Event()
    begun = threading.Barrier(FEW + 1)
    running = [workers.submit(lambda: (begun.wait(30), release.wait(30))) for _ in range(FEW)]
    begun.wait(30)
    waiting = workers.submit(int)
    workers.shutdown(wait=False, cancel_futures=True)
    with pytest.raises(CancelledError):
        waiting.result()
    with pytest.raises(RuntimeError):
        workers.submit(int)
    release.set()
    workers.shutdown()
    assert all(future.done() for future in running)
    assert workers._threads == set()
