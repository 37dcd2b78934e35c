"""map and map_async: bounded, in order or as completed, with a timeout, and cancelled at their end."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import aclosing, closing
from typing import Any

import pytest

import uringloop
from uringloop.scheduler import Scheduler

WAYS = ["map", "map_async"]
Taken = Callable[..., list[Any]]


@pytest.fixture(params=WAYS)
def take(request: pytest.FixtureRequest, loop: Any) -> Taken:
    """Returns up to `count` results of map, called in this thread, or of map_async, on the test's loop."""

    def from_map(scheduler: Scheduler, count: int, *args: Any, **options: Any) -> list[Any]:
        with closing(scheduler.map(*args, **options)) as results:  # type: ignore[type-var]
            return list(itertools.islice(results, count))

    async def all_of(results: AsyncGenerator[Any, None], count: int) -> list[Any]:
        found: list[Any] = []
        async with aclosing(results):
            while len(found) < count:
                try:
                    found.append(await anext(results))
                except StopAsyncIteration:
                    break
        return found

    def from_map_async(scheduler: Scheduler, count: int, *args: Any, **options: Any) -> list[Any]:
        found: list[Any] = loop.run_until_complete(all_of(scheduler.map_async(*args, **options), count))
        return found

    return from_map if request.param == "map" else from_map_async


class Source:
    """An endless input that counts what was taken of it."""

    taken = 0

    def __iter__(self) -> Iterator[int]:
        for number in itertools.count():
            self.taken += 1
            yield number


async def double(number: int, add: int = 0) -> int:
    await asyncio.sleep(0)
    return 2 * number + add


@pytest.mark.parametrize("max_pending", [None, 1, 4])
def test_an_endless_input_gives_results(engine: str, take: Taken, max_pending: int | None) -> None:
    source = Source()
    with Scheduler(2, max_pending=max_pending) as scheduler:
        found = take(scheduler, 50, double, source, itertools.count(1), buffersize=8)
        assert found == [3 * number + 1 for number in range(50)]
        assert source.taken <= 50 + 8 + 1
        assert scheduler.join(10)


def test_more_items_than_max_pending_are_no_error(engine: str, take: Taken) -> None:
    with Scheduler(2, max_pending=3) as scheduler:
        assert take(scheduler, 999, double, range(40)) == [2 * number for number in range(40)]
        assert take(scheduler, 999, double, range(40), buffersize=2) == [2 * number for number in range(40)]
        assert take(scheduler, 999, double, []) == []


def test_while_others_have_all_room_it_waits(engine: str, take: Taken) -> None:
    free = uringloop.Event()
    with Scheduler(2, max_pending=1) as scheduler:
        other = scheduler.submit(free.wait)
        with pytest.raises(TimeoutError):
            take(scheduler, 1, double, range(3), timeout=0.05)
        waker = threading.Timer(0.05, free.set)
        waker.start()
        assert take(scheduler, 999, double, range(3)) == [0, 2, 4]
        assert other.result(10)
        waker.join()


def test_results_wait_to_be_taken_up_to_the_buffersize(engine: str) -> None:
    source = Source()
    with Scheduler(2) as scheduler:
        results = scheduler.map(double, source, buffersize=5)
        assert next(results) == 0
        assert scheduler.join(10)
        assert source.taken <= 6
        assert next(results) == 2
        del results
        assert scheduler.join(10)


def test_map_submits_before_the_first_result_is_asked_for(engine: str) -> None:
    begun = uringloop.Event()

    async def begin(_: int) -> None:
        begun.set()

    with Scheduler(1) as scheduler:
        results = scheduler.map(begin, range(2))
        assert begun.wait_sync(10)
        assert list(results) == [None, None]


def test_as_completed_gives_results_as_jobs_end(engine: str, take: Taken) -> None:
    last = uringloop.Event()

    async def work(number: int) -> int:
        if number == 0:
            await last.wait()
        if number == 9:
            last.set()
        return number

    with Scheduler(2) as scheduler:
        found = take(scheduler, 999, work, range(10), as_completed=True)
    assert sorted(found) == list(range(10))
    assert found[0] != 0


def test_a_timeout_counts_from_the_call_and_cancels_the_rest(engine: str, take: Taken) -> None:
    never = uringloop.Event()
    with Scheduler(2) as scheduler:
        with pytest.raises(TimeoutError):
            take(scheduler, 999, lambda number: never.wait() if number else double(0), range(3), timeout=0.1)
        assert scheduler.join(10)


async def fail_at_one(number: int, never: uringloop.Event) -> int:
    if number == 1:
        raise LookupError(number)
    if number:
        await never.wait()
    await asyncio.sleep(0.02)
    return number


def test_an_error_comes_in_its_place_and_ends_the_map(engine: str, loop: Any) -> None:
    never = uringloop.Event()
    with Scheduler(2) as scheduler:
        results = scheduler.map(fail_at_one, range(4), itertools.repeat(never))
        assert next(results) == 0
        with pytest.raises(LookupError):
            next(results)
        assert scheduler.join(10)
        assert list(results) == []


@pytest.mark.parametrize("as_completed", [False, True])
def test_fail_fast_raises_the_first_error_at_once(engine: str, take: Taken, as_completed: bool) -> None:
    never = uringloop.Event()

    async def fail_at_last(number: int) -> None:
        if number == 3:
            raise LookupError(number)
        await never.wait()

    with Scheduler(2) as scheduler:
        with pytest.raises(LookupError):
            take(scheduler, 999, fail_at_last, range(4), fail_fast=True, as_completed=as_completed)
        assert scheduler.join(10)


def test_a_cancelled_job_fails_the_map(engine: str) -> None:
    async def cancel(_: int) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    with Scheduler(1) as scheduler:
        with pytest.raises(CancelledError):
            list(scheduler.map(cancel, range(1), fail_fast=True))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("options", "error"),
    [({"buffersize": 0}, ValueError), ({"buffersize": 1.5}, ValueError), ({"timeout": "1"}, TypeError)],
)
def test_wrong_options_are_refused_by_the_call(
    engine: str, way: str, options: dict[str, Any], error: type[Exception]
) -> None:
    with Scheduler(1) as scheduler:
        with pytest.raises(error):
            getattr(scheduler, way)(double, range(3), **options)


def test_a_function_that_is_not_async_is_an_error_and_takes_no_room(engine: str, take: Taken) -> None:
    with Scheduler(1, max_pending=1) as scheduler:
        with pytest.raises(TypeError):
            take(scheduler, 1, int, range(3))
        assert scheduler.submit(double, 1).result(10) == 2


def test_a_stopped_scheduler_refuses_and_closes_the_next_coroutine(engine: str, take: Taken) -> None:
    scheduler = Scheduler(1)
    scheduler.start()
    scheduler.stop()
    with pytest.raises(RuntimeError, match="stopped"):
        take(scheduler, 1, double, range(3))
