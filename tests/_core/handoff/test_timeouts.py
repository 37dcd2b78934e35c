"""What is no timeout is refused before anything is taken, left or waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import uringloop
from uringloop.scheduler import Scheduler
from uringloop.sync.wait_group import WaitGroup

BAD: list[Any] = ["1", True, False, float("nan"), [], 1j, object()]
LONG: list[Any] = [float("inf"), 1e300, 10**400]
SHORT: list[Any] = [0, -1, -0.5, float("-inf"), -(10**400)]


def lock(timeout: Any) -> Any:
    held = uringloop.Lock()
    held.acquire_nowait()
    return held, lambda: held.acquire_sync(timeout)


def semaphore(timeout: Any) -> Any:
    none = uringloop.Semaphore(0)
    return none, lambda: none.acquire_sync(timeout)


def event(timeout: Any) -> Any:
    unset = uringloop.Event()
    return unset, lambda: unset.wait_sync(timeout)


def auto_reset(timeout: Any) -> Any:
    unset = uringloop.AutoResetEvent()
    return unset, lambda: unset.wait_sync(timeout)


def barrier(timeout: Any) -> Any:
    two = uringloop.Barrier(2)
    return two, lambda: two.wait_sync(timeout)


def tally(timeout: Any) -> Any:
    one = WaitGroup()
    one.begin()
    return one, lambda: one.wait_sync(timeout)


@pytest.mark.parametrize("make", [lock, semaphore, event, auto_reset, barrier, tally])
def test_bad_timeout_leaves_no_waiter_in_the_line(engine: str, make: Callable[[Any], Any]) -> None:
    for timeout in BAD:
        subject, wait = make(timeout)
        with pytest.raises((TypeError, ValueError), match="timeout"):
            wait()
        assert subject.waiting == 0
    for timeout in SHORT:
        subject, wait = make(timeout)
        try:
            assert wait() is False
        except asyncio.BrokenBarrierError:
            assert make is barrier
        assert subject.waiting == 0


@pytest.mark.parametrize("timeout", BAD)
def test_bad_timeout_takes_nothing_that_is_free(engine: str, timeout: Any) -> None:
    free, auto, queue = uringloop.Lock(), uringloop.AutoResetEvent(), uringloop.Queue[int](1)
    auto.set()
    condition = uringloop.Condition()
    with pytest.raises((TypeError, ValueError)):
        free.acquire_sync(timeout)
    with pytest.raises((TypeError, ValueError)):
        auto.wait_sync(timeout)
    with pytest.raises((TypeError, ValueError)):
        queue.put_sync(1, timeout)
    assert queue.empty()
    queue.put_nowait(1)
    with pytest.raises((TypeError, ValueError)):
        queue.get_sync(timeout)
    with pytest.raises((TypeError, ValueError)):
        queue.join_sync(timeout)
    assert queue.qsize() == 1
    assert auto.is_set()
    assert not free.locked()
    with condition:
        with pytest.raises((TypeError, ValueError)):
            condition.wait_sync(timeout)
        with pytest.raises((TypeError, ValueError)):
            condition.wait_for_sync(lambda: False, timeout)
        assert condition.locked()
        assert condition.statistics()["waiting"] == 0


@pytest.mark.parametrize("timeout", LONG)
def test_timeout_beyond_what_a_clock_counts_is_for_ever(engine: str, timeout: Any) -> None:
    lock, condition = uringloop.Lock(), uringloop.Condition()
    assert lock.acquire_sync(timeout)
    with condition:
        assert condition.wait_for_sync(lambda: True, timeout)
    with Scheduler(1) as scheduler:
        assert scheduler.run_sync(lambda: 7).result(timeout) == 7
        assert scheduler.join(timeout)


def test_scheduler_and_its_jobs_refuse_it_too(engine: str) -> None:
    with Scheduler(1) as scheduler:
        event = uringloop.Event()
        job = scheduler.submit(event.wait())
        for timeout in BAD:
            with pytest.raises((TypeError, ValueError)):
                job.result(timeout)
            with pytest.raises((TypeError, ValueError)):
                job.exception(timeout)
            with pytest.raises((TypeError, ValueError)):
                scheduler.join(timeout)
            with pytest.raises((TypeError, ValueError)):
                scheduler.stop(timeout)
            with pytest.raises((TypeError, ValueError)):
                scheduler.stop(0, timeout)
        assert scheduler.statistics()["state"] == "running"
        event.set()
        assert job.result(10)
