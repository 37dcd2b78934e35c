"""JobGroup: as asyncio.TaskGroup, for jobs of any loops, on a loop and in a plain thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import uringloop
from uringloop.scheduler import JobGroup, Scheduler, current_context

Start = Callable[..., Any]


async def forever() -> None:
    await asyncio.Event().wait()


async def fail(error: BaseException, after: float = 0.0) -> None:
    await asyncio.sleep(after)
    raise error


async def scenario_all_end(start: Start) -> Any:
    done: list[int] = []

    async def work(number: int) -> None:
        await asyncio.sleep(0.01)
        done.append(number)

    async with start.__self__:  # type: ignore[attr-defined]
        for number in range(5):
            start(work(number))
    return sorted(done)


async def scenario_failure_interrupts_the_block(start: Start) -> Any:
    async with start.__self__:  # type: ignore[attr-defined]
        start(forever())
        start(fail(LookupError("job")))
        await forever()


async def scenario_failures_after_the_block(start: Start) -> Any:
    async with start.__self__:  # type: ignore[attr-defined]
        start(forever())
        start(fail(LookupError("job"), 0.05))


async def scenario_error_of_the_block(start: Start) -> Any:
    async with start.__self__:  # type: ignore[attr-defined]
        start(forever())
        raise ValueError("block")


async def scenario_error_of_both(start: Start) -> Any:
    async with start.__self__:  # type: ignore[attr-defined]
        start(fail(LookupError("job")))
        try:
            await forever()
        finally:
            raise ValueError("block")


async def scenario_cancelled_from_outside_in_the_block(start: Start) -> Any:
    task = asyncio.current_task()
    assert task is not None
    async with start.__self__:  # type: ignore[attr-defined]
        start(forever())
        asyncio.get_running_loop().call_later(0.02, task.cancel, "why")
        await forever()


async def scenario_cancelled_from_outside_at_the_end(start: Start) -> Any:
    task = asyncio.current_task()
    assert task is not None
    async with start.__self__:  # type: ignore[attr-defined]
        start(forever())
        asyncio.get_running_loop().call_later(0.02, task.cancel, "why")


async def scenario_a_timeout_around_it(start: Start) -> Any:
    async with asyncio.timeout(0.02):
        async with start.__self__:  # type: ignore[attr-defined]
            start(forever())


async def scenario_the_count_of_cancellations(start: Start) -> Any:
    task = asyncio.current_task()
    assert task is not None
    try:
        async with start.__self__:  # type: ignore[attr-defined]
            start(fail(LookupError()))
            await forever()
    except ExceptionGroup as error:
        await asyncio.sleep(0)  # nothing cancels it
        return task.cancelling(), len(error.exceptions)


async def scenario_a_cancelled_job_is_no_error(start: Start) -> Any:
    async with start.__self__:  # type: ignore[attr-defined]
        job = start(forever())
        await asyncio.sleep(0.01)
        job.cancel()
    return job.cancelled()


async def scenario_no_jobs(start: Start) -> Any:
    async with start.__self__:  # type: ignore[attr-defined]
        pass
    coroutine = forever()
    try:
        start(coroutine)
    except RuntimeError:
        return "refused"
    finally:
        coroutine.close()  # Python 3.13 and later close it, and so does the JobGroup


SCENARIOS = {name: value for name, value in globals().items() if name.startswith("scenario_")}


def outcome(error: BaseException) -> Any:
    if isinstance(error, BaseExceptionGroup):
        return type(error), sorted((type(one).__name__, str(one)) for one in error.exceptions)
    return type(error), error.args


async def played(scenario: Callable[[Start], Any], start: Start) -> Any:
    try:
        return await asyncio.ensure_future(scenario(start))
    except BaseException as error:
        return outcome(error)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_group_does_what_a_task_group_does(scheduler: Scheduler, loop: Any, name: str) -> None:
    ours = loop.run_until_complete(played(SCENARIOS[name], scheduler.group().submit))
    stock = asyncio.TaskGroup()
    expected = loop.run_until_complete(played(SCENARIOS[name], stock.create_task))
    assert ours == expected
    assert scheduler.join(10)


def test_in_a_thread_it_waits_for_all(scheduler: Scheduler) -> None:
    with scheduler.group() as group:
        jobs = [group.submit(asyncio.sleep, 0.01, number) for number in range(5)]
        assert repr(group).startswith("<JobGroup open jobs=")
    assert all(job.done() for job in jobs)
    assert [job.result() for job in jobs] == list(range(5))


def test_in_a_thread_a_failure_cancels_the_others(scheduler: Scheduler) -> None:
    with pytest.raises(ExceptionGroup) as raised:
        with scheduler.group() as group:
            others = [group.submit(forever) for _ in range(6)]
            group.submit(fail, LookupError("job"))
            assert concurrent.futures.wait(others, 10).not_done == set()
            assert all(job.cancelled() for job in others)
            with pytest.raises(RuntimeError, match="takes no jobs"):
                group.submit(forever())
    assert outcome(raised.value) == (ExceptionGroup, [("LookupError", "job")])
    assert scheduler.join(10)


def test_a_job_submitted_while_another_fails_is_cancelled(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = scheduler.submit

    def late(*args: Any, **options: Any) -> Any:
        job = submit(*args, **options)
        group._cancel()  # as another thread does meanwhile
        return job

    with scheduler.group() as group:
        monkeypatch.setattr(scheduler, "submit", late)
        job = group.submit(forever)
    assert job.cancelled()


def test_in_a_thread_an_error_of_the_block_cancels_all(scheduler: Scheduler) -> None:
    with pytest.raises(ExceptionGroup) as raised:
        with scheduler.group() as group:
            job = group.submit(forever)
            raise ValueError("block")
    assert job.cancelled()
    assert outcome(raised.value) == (ExceptionGroup, [("ValueError", "block")])


def test_ctrl_c_in_the_block_stays_itself(scheduler: Scheduler, loop: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        with scheduler.group() as group:
            job = group.submit(forever)
            raise KeyboardInterrupt
    assert job.cancelled()


def test_a_job_that_exits_is_an_error_that_ends_no_loop(scheduler: Scheduler, loop: Any) -> None:
    async def main() -> None:
        async with scheduler.group() as group:
            group.submit(fail, SystemExit(3))

    with pytest.raises(ExceptionGroup) as raised:
        loop.run_until_complete(main())
    assert isinstance(raised.value.exceptions[0], uringloop.JobExited)
    assert isinstance(raised.value.exceptions[0].__cause__, SystemExit)


def test_jobs_on_all_loops_submit_to_their_group(scheduler: Scheduler, loop: Any) -> None:
    ran: list[str] = []

    async def spread(group: JobGroup, depth: int) -> None:
        context = current_context()
        assert context is not None
        ran.append(context.name)
        if depth:
            for other in scheduler.contexts:
                group.submit(spread, group, depth - 1, context=other, key=None, name="spread")
        await asyncio.sleep(0)

    async def main() -> None:
        async with scheduler.group() as group:
            group.submit(spread, group, 4)

    loop.run_until_complete(main())
    assert len(ran) == sum(3**depth for depth in range(5))
    assert len(set(ran)) == 3


def test_a_failure_reaches_a_sleeping_loop_and_jobs_on_sleeping_loops(
    scheduler: Scheduler, loop: Any
) -> None:
    """The loop of the block and those of the siblings sleep when the job fails; each is woken."""
    gate = threading.Event()

    async def main() -> None:
        async with scheduler.group() as group:
            for context in scheduler.contexts:
                group.submit(forever, context=context)
            released = asyncio.get_running_loop().run_in_executor(None, gate.wait, 10)
            group.submit(fail, LookupError(), 0.1, context=scheduler.contexts[0])
            try:
                await forever()
            finally:
                gate.set()
                await released

    with pytest.raises(ExceptionGroup):
        loop.run_until_complete(asyncio.wait_for(main(), 10))


def test_submit_async_waits_for_room(engine: str, loop: Any) -> None:
    async def main() -> list[int]:
        async with Scheduler(2, max_pending=2) as scheduler:
            async with scheduler.group() as group:
                jobs = [await group.submit_async(asyncio.sleep, 0.001, number) for number in range(20)]
            with pytest.raises(ExceptionGroup) as raised:
                async with scheduler.group() as group:
                    for _ in range(3):
                        group.submit(forever)
            assert isinstance(raised.value.exceptions[0], uringloop.SchedulerFull)
            return [job.result() for job in jobs]

    assert loop.run_until_complete(main()) == list(range(20))


def test_a_group_is_used_once_and_with_the_right_statement(scheduler: Scheduler, loop: Any) -> None:
    group = scheduler.group()
    with pytest.raises(RuntimeError, match="takes no jobs"):
        group.submit(forever())
    with group:
        pass
    with pytest.raises(RuntimeError, match="entered already"):
        group.__enter__()

    async def main() -> None:
        with pytest.raises(RuntimeError, match="async with"):
            scheduler.group().__enter__()

    loop.run_until_complete(main())


def test_an_ended_group_is_freed_without_the_collector(scheduler: Scheduler, loop: Any) -> None:
    seen: list[weakref.ref[JobGroup]] = []

    async def raise_new() -> None:
        raise LookupError

    async def use() -> None:
        async with scheduler.group() as group:
            seen.append(weakref.ref(group))
            group.submit(raise_new)

    async def main() -> None:
        with suppress(ExceptionGroup):
            await use()

    gc.collect()
    gc.disable()
    try:
        loop.run_until_complete(main())
        assert scheduler.join(10)
        deadline = time.monotonic() + 5
        while seen[0]() is not None and time.monotonic() < deadline:
            # Without the GIL, a thread frees what it has made and another has dropped when it runs next.
            assert [job.result(10) for job in scheduler.broadcast(asyncio.sleep, 0)] == [None] * 3
        assert seen[0]() is None
    finally:
        gc.enable()
