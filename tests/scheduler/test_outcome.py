"""asyncio's functions take a Job, on loops that sleep while the job ends in another thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import uringloop
from uringloop.scheduler import Scheduler

LONG = 60.0  # a test that waits so long has missed a wakeup, and runs into its timeout


async def work(number: int, seconds: float = 0.02) -> int:
    await asyncio.sleep(seconds)
    if number < 0:
        raise LookupError(number)
    return number


Run = Callable[[Any], Any]


@pytest.fixture(params=["ours", "asyncio"])
def run(request: pytest.FixtureRequest, loop: Any) -> Run:
    """Runs a coroutine, on a loop of the engine or on asyncio's, which sleeps while it waits."""
    if request.param == "ours":
        return lambda main: loop.run_until_complete(asyncio.wait_for(main, 10))
    return lambda main: asyncio.run(asyncio.wait_for(main, 10))


def test_wait_returns_the_jobs(scheduler: Scheduler, run: Run) -> None:
    async def main() -> None:
        jobs = [scheduler.submit(work, number) for number in range(5)]
        done, pending = await asyncio.wait(jobs)
        assert (done, pending) == (set(jobs), set())
        assert sorted(job.result() for job in done) == list(range(5))
        assert (await asyncio.wait(jobs))[0] == set(jobs)  # of jobs that are done already

    run(main())


def test_wait_for_the_first_and_for_the_first_exception(scheduler: Scheduler, run: Run) -> None:
    async def main() -> None:
        for first, condition in [(0, asyncio.FIRST_COMPLETED), (-1, asyncio.FIRST_EXCEPTION)]:
            fast, slow = scheduler.submit(work, first), scheduler.submit(work, 1, LONG)
            done, pending = await asyncio.wait({fast, slow}, return_when=condition)
            assert (done, pending) == ({fast}, {slow})
            slow.cancel()
            done, pending = await asyncio.wait([slow])
            assert slow in done and slow.cancelled()

    run(main())


def test_wait_with_a_timeout_leaves_nothing_in_the_job(scheduler: Scheduler, run: Run) -> None:
    class Callback:
        def __call__(self, job: object) -> None:
            raise AssertionError("was removed")

    async def main() -> None:
        job = scheduler.submit(work, 1, LONG)
        done, pending = await asyncio.wait([job], timeout=0.01)
        assert (done, pending) == (set(), {job})
        callback = Callback()
        job.add_done_callback(callback)
        assert job.remove_done_callback(callback) == 1
        seen = weakref.ref(callback)
        del callback
        gc.collect()
        assert seen() is None
        job.cancel()
        await asyncio.wait([job])

    run(main())


def test_gather_as_completed_shield_and_wrap_future(scheduler: Scheduler, run: Run) -> None:
    async def main() -> None:
        jobs = [scheduler.submit(work, number) for number in range(3)]
        assert await asyncio.gather(*jobs) == [0, 1, 2]
        results = await asyncio.gather(
            scheduler.submit(work, -1), scheduler.submit(work, 1), return_exceptions=True
        )
        assert (type(results[0]), results[1]) == (LookupError, 1)
        jobs = [scheduler.submit(work, number, 0.05 * number) for number in (2, 1)]
        assert [await each for each in asyncio.as_completed(jobs)] == [1, 2]
        job = scheduler.submit(work, 5, 0.05)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(job), 0.001)
        assert await asyncio.wrap_future(job) == 5
        assert await asyncio.wrap_future(job) == 5
        job = scheduler.submit(work, 1, LONG)
        wrapped = asyncio.wrap_future(job)
        wrapped.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job

    run(main())


def test_a_callback_that_a_loop_adds_runs_on_that_loop(scheduler: Scheduler, run: Run) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="")

    async def main() -> None:
        ended = asyncio.Event()
        calls: list[tuple[threading.Thread, str]] = []

        def called(job: object) -> None:
            assert asyncio.get_running_loop() is loop
            calls.append((threading.current_thread(), variable.get()))
            if len(calls) == 3:
                ended.set()

        loop = asyncio.get_running_loop()
        variable.set("own")
        job = scheduler.submit(work, 1)
        job.add_done_callback(called)
        variable.set("given")
        job.add_done_callback(called, context=contextvars.copy_context())
        variable.set("later")
        await job
        job.add_done_callback(called)  # not within the call, as asyncio's futures
        assert len(calls) < 3
        await ended.wait()
        assert [thread for thread, _ in calls] == [threading.current_thread()] * 3
        assert [value for _, value in calls] == ["own", "given", "later"]

    run(main())


def test_a_callback_that_a_plain_thread_adds_is_called_by_the_settling_thread(scheduler: Scheduler) -> None:
    called: list[threading.Thread] = []
    told = threading.Event()

    def note(job: concurrent.futures.Future[Any]) -> None:
        called.append(threading.current_thread())
        told.set()

    context = scheduler.contexts[1]
    job = scheduler.submit(work, 1, context=context)
    job.add_done_callback(note)
    assert told.wait(10)
    job.add_done_callback(note)  # at once
    assert called == [context.thread, threading.current_thread()]


def test_each_removed_callback_counts(scheduler: Scheduler) -> None:
    called: list[Any] = []

    def other(job: object) -> None:
        called.append("other")

    job = scheduler.submit(work, 1, LONG)
    for callback in (called.append, other, called.append):
        job.add_done_callback(callback)
    assert job.remove_done_callback(called.append) == 2
    assert job.remove_done_callback(called.append) == 0
    job.cancel()
    assert scheduler.join(10)
    assert called == ["other"]
    assert job.remove_done_callback(other) == 0


def test_threads_add_and_remove_at_the_same_time(scheduler: Scheduler) -> None:
    job = scheduler.submit(work, 1, LONG)
    called: list[int] = []
    begin = threading.Barrier(4)

    class Note:
        def __init__(self, number: int) -> None:
            self.number = number

        def __call__(self, job: object) -> None:
            called.append(self.number)

    def change(number: int) -> None:
        begin.wait()
        for _ in range(300):
            mine = Note(number)
            job.add_done_callback(mine)
            assert job.remove_done_callback(mine) == 1
        job.add_done_callback(mine)

    threads = [threading.Thread(target=change, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    job.cancel()
    assert scheduler.join(10)
    assert sorted(called) == [0, 1, 2, 3]


def test_a_closed_loop_gets_no_callbacks(scheduler: Scheduler, new_loop: Any, caplog: Any) -> None:
    called: list[Any] = []
    job = scheduler.submit(work, 1, LONG)

    async def add() -> None:
        job.add_done_callback(called.append)

    for loop in (new_loop(), asyncio.new_event_loop()):
        loop.run_until_complete(add())
        loop.close()
    job.cancel()
    assert scheduler.join(10)
    assert called == []
    assert caplog.text == ""


def test_an_error_of_a_callback_goes_to_its_loop_or_the_log(
    scheduler: Scheduler, loop: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(job: object) -> None:
        raise LookupError

    reports: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reports.append(context))
        job = scheduler.submit(work, 1)
        job.add_done_callback(fail)
        await job
        await asyncio.sleep(0)

    loop.run_until_complete(main())
    assert isinstance(reports[0]["exception"], LookupError)
    job = scheduler.submit(work, 1)
    job.add_done_callback(fail)
    assert scheduler.join(10)
    assert "Exception calling" in caplog.text


def test_the_name_is_that_of_the_task(scheduler: Scheduler) -> None:
    async def name() -> str:
        task = asyncio.current_task()
        assert task is not None
        return task.get_name()

    job = scheduler.submit(name, name="worker")
    assert (job.result(10), job.name) == ("worker", "worker")
    assert scheduler.submit(name).name is None


def test_a_blocked_loop_does_not_delay_a_group(scheduler: Scheduler, loop: Any) -> None:
    """The first failure cancels the siblings while the loop that submitted them does not turn."""

    async def main() -> None:
        async with scheduler.group() as group:
            other = group.submit(uringloop.Event().wait)
            failing = group.submit(work, -1)
            while not (failing.done() and other.done()):
                pass

    with pytest.raises(ExceptionGroup):
        loop.run_until_complete(main())
