"""A job that raises what leaves an event loop, or stops its context's loop, ends nothing but itself."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
from typing import Any

import pytest

import uringloop
from uringloop.errors import JobExited
from uringloop.scheduler import Scheduler, StopReport, current_context


@pytest.mark.parametrize("what", [SystemExit, KeyboardInterrupt])
def test_a_system_exit_ends_only_the_job_that_raised_it(
    engine: str, what: type[BaseException], caplog: Any
) -> None:
    with Scheduler(1) as scheduler:
        (context,) = scheduler.contexts
        goes_on = uringloop.Event()

        async def begun(number: int) -> int:
            await goes_on.wait()
            return number

        async def short(number: int) -> int:
            return number

        async def leave() -> None:
            raise what("enough")

        jobs = [scheduler.submit(begun(number)) for number in range(300)]
        leaving = scheduler.submit(leave())
        jobs += [scheduler.submit(short(number)) for number in range(300, 600)]
        with pytest.raises(what, match="enough"):
            leaving.result(10)
        goes_on.set()
        assert [job.result(10) for job in jobs] == list(range(600))
        assert context.alive
        assert context.error is None
        assert scheduler.join(10)
        assert scheduler.statistics()["pending"] == 0
        assert context.statistics()["failed"] == 1
        assert scheduler.stop() == StopReport()
    assert not caplog.records, "who submitted the job was told, and no one else need be"


def test_many_jobs_that_exit_end_no_other_job(engine: str) -> None:
    async def leave() -> None:
        sys.exit(3)

    with Scheduler(2) as scheduler:
        jobs = [scheduler.submit(leave()) for _ in range(50)]
        concurrent.futures.wait(jobs, 10)
        assert [getattr(job.exception(0), "code", None) for job in jobs] == [3] * 50
        assert scheduler.stop() == StopReport()


def test_a_job_that_exits_does_not_end_the_loop_that_awaits_it(engine: str) -> None:
    async def leave() -> None:
        raise SystemExit(3)

    with Scheduler(2) as scheduler:

        async def wait() -> str:
            with pytest.raises(JobExited) as raised:
                await scheduler.submit(leave(), context=scheduler.contexts[0])
            assert isinstance(raised.value.__cause__, SystemExit)
            return current_context().name  # type: ignore[union-attr]

        other = scheduler.contexts[1]
        assert scheduler.submit(wait(), context=other).result(10) == other.name


def test_a_job_that_stops_its_loop_ends_no_other_job(engine: str) -> None:
    async def stop() -> None:
        asyncio.get_running_loop().stop()

    with Scheduler(1) as scheduler:
        waiting = scheduler.submit(asyncio.sleep(0.01, "slept"))
        scheduler.submit(stop()).result(10)
        assert waiting.result(10) == "slept"
        assert scheduler.submit(asyncio.sleep(0, "again")).result(10) == "again"
        assert scheduler.stop() == StopReport()


def test_a_callback_that_exits_outside_any_job_is_reported(engine: str, caplog: Any) -> None:
    async def begin() -> None:
        asyncio.get_running_loop().call_soon(sys.exit, "unseen")

    with Scheduler(1) as scheduler:
        scheduler.submit(begin()).result(10)
        assert scheduler.submit(asyncio.sleep(0, 1)).result(10) == 1
    assert "goes on" in caplog.text
    assert "unseen" in caplog.text


def test_a_job_may_exit_while_the_scheduler_stops(engine: str) -> None:
    begun = uringloop.Event()

    async def leave_when_cancelled() -> None:
        begun.set()
        try:
            await asyncio.sleep(100)
        finally:
            sys.exit(4)

    async def last() -> str:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "ended"

    with Scheduler(1) as scheduler:
        leaving, other = scheduler.submit(leave_when_cancelled()), scheduler.submit(last())
        assert begun.wait_sync(10)
        scheduler.stop(timeout=0)
        assert other.result(0) == "ended"
        with pytest.raises(SystemExit):
            leaving.result(0)
