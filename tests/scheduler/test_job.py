"""Job: result, exception and cancellation, both ways, between any loops and threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import gc
import threading
import time
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from uringloop.scheduler import Scheduler, current_context


async def where(*_: Any) -> str:
    context = current_context()
    assert context is not None
    assert asyncio.get_running_loop() is context.loop
    assert threading.current_thread() is context.thread
    return context.name


async def nothing() -> None:
    pass


def test_exception_comes_back_with_its_traceback(scheduler: Scheduler) -> None:
    async def fail() -> None:
        raise ZeroDivisionError("here")

    job = scheduler.submit(fail())
    with pytest.raises(ZeroDivisionError, match="here") as raised:
        job.result(10)
    assert "fail" in [entry.name for entry in raised.traceback]
    assert isinstance(job.exception(), ZeroDivisionError)
    with pytest.raises(ExceptionGroup):
        scheduler.submit(group()).result(10)


async def group() -> None:
    raise ExceptionGroup("both", [ValueError(), KeyError()])


def test_job_is_awaited_on_any_loop(scheduler: Scheduler, new_loop: Any) -> None:
    async def both() -> list[str]:
        jobs = [scheduler.submit(where()) for _ in range(10)]
        return await asyncio.gather(*jobs)

    assert len(new_loop().run_until_complete(both())) == 10
    assert len(asyncio.run(both())) == 10

    async def nested() -> str:
        return await scheduler.submit(where())

    assert scheduler.submit(nested()).result(10).startswith("test-")


def test_contextvars_go_along(scheduler: Scheduler) -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable")
    variable.set(7)

    async def look() -> int:
        return variable.get()

    job = scheduler.submit(look())
    variable.set(8)
    assert job.result(10) == 7


def test_result_in_a_loop_raises_where_it_would_block(scheduler: Scheduler, loop: Any) -> None:
    async def main() -> None:
        job = scheduler.submit(asyncio.sleep(0.2))
        with pytest.raises(RuntimeError, match="await job"):
            job.result()
        await job
        assert job.result() is None

    loop.run_until_complete(main())


def test_result_times_out(scheduler: Scheduler) -> None:
    job = scheduler.submit(asyncio.sleep(100))
    with pytest.raises(TimeoutError):
        job.result(0.01)
    assert job.running()
    assert job.cancel()
    with pytest.raises(concurrent.futures.CancelledError):
        job.result(10)
    assert job.cancelled()
    assert not job.cancel()


def test_cancelling_the_awaiting_task_cancels_the_job(scheduler: Scheduler, loop: Any) -> None:
    ended = threading.Event()

    async def long() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            ended.set()

    async def main() -> None:
        job = scheduler.submit(long())
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(job, 0.02)
        assert job.cancelled()
        shielded = scheduler.submit(asyncio.sleep(0.2, "value"))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(shielded), 0.001)
        assert await shielded == "value"

    loop.run_until_complete(main())
    assert ended.wait(10)


def test_job_cancelled_before_it_starts_never_does(scheduler: Scheduler) -> None:
    begun = []

    async def note() -> None:
        begun.append(1)

    context = scheduler.contexts[0]
    blocked, free = threading.Event(), threading.Event()

    async def block() -> None:
        blocked.set()
        free.wait(10)

    scheduler.submit(block(), context=context)
    assert blocked.wait(10)
    job = scheduler.submit(note(), context=context)
    assert job.cancel()
    free.set()
    assert scheduler.join(10)
    assert job.cancelled()
    assert begun == []


def test_concurrent_futures_take_jobs(scheduler: Scheduler, loop: Any) -> None:
    jobs = [scheduler.submit(asyncio.sleep(0.01 * number, number)) for number in range(5)]
    assert sorted(job.result() for job in concurrent.futures.as_completed(jobs, 10)) == list(range(5))
    done, pending = concurrent.futures.wait(jobs, 10)
    assert len(done) == 5
    assert not pending
    called: list[Any] = []
    jobs[0].add_done_callback(called.append)
    assert called == [jobs[0]]
    assert loop.run_until_complete(wrapped(scheduler)) == 9
    with pytest.raises(RuntimeError):
        jobs[0].set_result(1)


def test_concurrent_futures_learn_of_the_end_once(scheduler: Scheduler) -> None:
    """Who looks at a job that ends meanwhile finds it ended, or is told; never both."""
    ends = threading.Event()

    async def work() -> None:
        await asyncio.to_thread(ends.wait)

    job: Any = scheduler.submit(work())
    told: list[Any] = []
    with job._condition:  # who looks has it
        ends.set()
        while not job.done():
            time.sleep(0.001)
        assert job._state == "RUNNING"
        job._waiters.append(SimpleNamespace(add_result=told.append))
    scheduler.join(10)
    assert told == [job]
    assert job._state == "FINISHED"


async def wrapped(scheduler: Scheduler) -> int:
    return await asyncio.wrap_future(scheduler.submit(asyncio.sleep(0.01, 9)))


def test_job_whose_result_is_dropped_still_runs(scheduler: Scheduler) -> None:
    done = threading.Event()

    async def work() -> None:
        await asyncio.sleep(0.01)
        gc.collect()
        await asyncio.sleep(0.01)
        done.set()

    reference = weakref.ref(scheduler.submit(work()))
    assert done.wait(10)
    assert scheduler.join(10)
    deadline = time.monotonic() + 5
    while reference() is not None and time.monotonic() < deadline:
        scheduler.submit(nothing()).result(10)
    assert reference() is None


def test_error_that_is_never_retrieved_is_logged(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    scheduler.submit(fail())
    assert scheduler.join(10)
    scheduler.broadcast(nothing)
    assert scheduler.join(10)
    gc.collect()
    assert "never retrieved" in caplog.text
