"""Stopping: bounded whatever is held up, and nobody waits in vain for what it left behind."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import uringloop
from tests.scheduler.dying import DEATH, die, kill
from uringloop.errors import ContextDied
from uringloop.scheduler import Context, Job, Scheduler, StopReport, context, current_context, stopping


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (context, stopping):
        monkeypatch.setattr(module, "LEAST_END_SECONDS", 0.1)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What blocking code waits for; it is let go at the end, and its threads end."""
    opened = threading.Event()
    before = set(threading.enumerate())
    yield opened
    opened.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(10)


def begin_stop(scheduler: Scheduler, *args: Any) -> tuple[threading.Thread, list[StopReport]]:
    reports: list[StopReport] = []
    thread = threading.Thread(target=lambda: reports.append(scheduler.stop(*args)))
    thread.start()
    while scheduler.statistics()["state"] == "running":
        time.sleep(0.001)
    return thread, reports


def test_job_that_runs_a_function_while_stop_waits_is_served(engine: str) -> None:
    scheduler = Scheduler(2)
    scheduler.start()
    goes_on = uringloop.Event()

    async def later() -> int:
        await goes_on.wait()
        return await scheduler.run_sync(lambda: 7)

    job = scheduler.submit(later())
    thread, reports = begin_stop(scheduler)
    goes_on.set()
    thread.join(10)
    assert not thread.is_alive()
    assert job.result(0) == 7
    assert reports == [StopReport()]


def test_function_that_submits_while_stop_waits_is_served(engine: str) -> None:
    scheduler = Scheduler(2)
    scheduler.start()
    begun, goes_on = threading.Event(), threading.Event()

    def function() -> int:
        begun.set()
        assert goes_on.wait(10)
        with pytest.raises(RuntimeError, match="cannot wait"):
            scheduler.stop()
        return scheduler.submit(asyncio.sleep(0, 8)).result(10)

    job = scheduler.run_sync(function)
    assert begun.wait(10)
    thread, _ = begin_stop(scheduler)
    goes_on.set()
    thread.join(10)
    assert job.result(0) == 8


def test_function_that_does_not_return_is_abandoned(
    engine: str, impatient: None, gate: threading.Event
) -> None:
    scheduler = Scheduler(1)
    scheduler.start()
    begun = threading.Event()

    def function() -> None:
        begun.set()
        gate.wait(20)

    job = scheduler.run_sync(function)
    assert begun.wait(10)
    report = scheduler.stop(0, 0)
    assert report.abandoned == [job]
    with pytest.raises(RuntimeError, match="abandoned"):
        job.result(0)


def test_function_that_returns_while_contexts_end_is_not_abandoned(engine: str) -> None:
    begun, goes_on = threading.Event(), threading.Event()
    scheduler = Scheduler(1, on_stop=lambda context: goes_on.set())
    scheduler.start()

    def function() -> int:
        begun.set()
        goes_on.wait(20)
        return 7

    job = scheduler.run_sync(function)
    assert begun.wait(10)
    assert scheduler.stop(0).abandoned == []
    assert job.result(0) == 7


def test_blocked_loop_is_left_behind_with_its_jobs(
    engine: str, impatient: None, gate: threading.Event
) -> None:
    scheduler = Scheduler(2, stealing=False)
    scheduler.start()
    victim, other = scheduler.contexts
    begun = threading.Event()
    ran: list[int] = []

    async def block() -> None:
        asyncio.get_running_loop().call_soon(ran.append, 1)  # its loop has more to do
        begun.set()
        gate.wait(20)

    async def never() -> None:
        ran.append(2)

    jobs: list[Any] = [
        scheduler.submit(block(), context=victim),
        scheduler.submit(asyncio.sleep(0, 1), context=other),
    ]
    assert begun.wait(10)
    waiting: list[Any] = [scheduler.submit(never(), context=victim) for _ in range(3)]
    report = scheduler.stop(0.01, 0)
    assert report.stuck == [victim]
    assert report.abandoned == jobs[:1]
    assert jobs[1].result(0) == 1
    for job in (jobs[0], *waiting):
        with pytest.raises(RuntimeError, match="held up"):
            job.result(0)
    gate.set()
    victim.thread.join(10)
    assert not victim.thread.is_alive()
    assert 2 not in ran


def test_burst_behind_a_blocked_loop_is_stolen(engine: str, gate: threading.Event) -> None:
    with Scheduler(2, dispatch=lambda contexts, key: contexts[0]) as scheduler:
        begun = threading.Event()

        async def block() -> None:
            begun.set()
            gate.wait(20)

        async def where() -> Context | None:
            return current_context()

        blocked = scheduler.submit(block(), context=scheduler.contexts[0])
        assert begun.wait(10)
        jobs = scheduler.submit_many(where() for _ in range(20))
        assert {job.result(10) for job in jobs} == {scheduler.contexts[1]}
        gate.set()
        blocked.result(10)


@pytest.mark.parametrize("last", ["asleep", "about to sleep"])
def test_single_job_behind_a_blocked_loop_is_taken_over(
    engine: str, gate: threading.Event, last: str
) -> None:
    """By one that sleeps, and by one that is going to and was not found asleep."""
    with Scheduler(2, dispatch=lambda contexts, key: contexts[0]) as scheduler:
        begun, blocking = threading.Event(), threading.Event()
        waiting: list[Job[Any]] = []

        async def block() -> None:
            begun.set()
            gate.wait(20)

        async def where() -> Context | None:
            return current_context()

        async def submit_before_sleeping() -> None:
            blocking.wait(20)
            waiting.append(scheduler.submit(where()))

        other: Any = scheduler.contexts[1]
        blocked = scheduler.submit(block(), context=scheduler.contexts[0])
        assert begun.wait(10)
        if last == "asleep":
            asleep_again(other)
            waiting.append(scheduler.submit(where()))
        else:
            submitting = scheduler.submit(submit_before_sleeping(), context=other)
            blocking.set()
            submitting.result(10)
        assert waiting[0].result(10) is other
        gate.set()
        blocked.result(10)


def asleep_again(context: Context) -> None:
    before = -1
    while context.statistics()["sleeps"] != before:
        before = context.statistics()["sleeps"]
        time.sleep(0.05)


def test_stop_hook_that_does_not_return_does_not_hold_up_the_stop(
    engine: str, impatient: None, gate: threading.Event
) -> None:
    def hook(context: Context) -> None:
        if context.name.endswith("1"):
            gate.wait(20)

    scheduler = Scheduler(2, on_stop=hook)
    scheduler.start()
    assert scheduler.submit(asyncio.sleep(0, 3)).result(10) == 3
    assert scheduler.stop(0, 0).stuck == [scheduler.contexts[1]]


def test_executor_and_generator_that_do_not_end_do_not_hold_up_the_stop(
    engine: str, impatient: None, gate: threading.Event
) -> None:
    scheduler = Scheduler(1)
    scheduler.start()
    kept: list[Any] = []

    async def stubborn() -> Any:
        try:
            yield 1
        finally:
            while not gate.is_set():
                try:
                    await asyncio.sleep(30)
                except asyncio.CancelledError:
                    pass

    async def begin() -> None:
        kept.append(stubborn())
        await anext(kept[0])
        asyncio.get_running_loop().run_in_executor(None, gate.wait, 20)

    scheduler.submit(begin()).result(10)
    assert scheduler.stop(0, 0).stuck == []
    assert not scheduler.contexts[0].thread.is_alive()


def test_stop_beside_another_waits_for_it_and_not_for_ever(engine: str, impatient: None) -> None:
    scheduler = Scheduler(1)
    scheduler.start()
    goes_on = uringloop.Event()
    job = scheduler.submit(goes_on.wait())
    thread, reports = begin_stop(scheduler)
    with pytest.raises(TimeoutError, match="under way"):
        scheduler.stop(0, 0)
    goes_on.set()
    assert scheduler.stop() == StopReport()
    thread.join(10)
    assert reports == [StopReport()]
    assert job.result(0)


def test_stop_in_a_loop_is_refused_before_anything_ends(engine: str, loop: Any) -> None:
    with Scheduler(1) as scheduler:

        async def main() -> None:
            with pytest.raises(RuntimeError, match="await aclose"):
                scheduler.stop()

        async def within() -> None:
            with pytest.raises(RuntimeError, match="cannot wait"):
                await scheduler.aclose()

        loop.run_until_complete(main())
        scheduler.submit(within()).result(10)
        assert scheduler.statistics()["state"] == "running"


def test_aclose_needs_no_thread_of_the_loops_executor(loop: Any, engine: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    scheduler = Scheduler(1)

    async def main() -> None:
        goes_on = uringloop.Event()
        job = scheduler.submit(goes_on.wait())
        running = asyncio.get_running_loop()
        running.set_default_executor(ThreadPoolExecutor(1))
        waits = running.run_in_executor(None, job.result)
        closing = asyncio.create_task(scheduler.aclose())
        while scheduler.statistics()["state"] != "stopping":
            await asyncio.sleep(0.001)
        goes_on.set()
        assert await closing == StopReport()
        assert await waits
        await running.shutdown_default_executor()

    scheduler.start()
    loop.run_until_complete(main())


def test_job_whose_callback_exits_is_counted_as_ended(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda args: None)
    with Scheduler(1) as scheduler:

        def leave(job: Any) -> None:
            raise SystemExit

        job = scheduler.run_sync(lambda: 1)
        job.add_done_callback(leave) if not job.done() else None
        held = uringloop.Event()
        waiting = scheduler.submit(held.wait())
        waiting.add_done_callback(leave)
        held.set()
        assert scheduler.join(10)
        assert scheduler.statistics()["pending"] == 0


def test_context_that_dies_fails_what_it_had_not_started(engine: str, caplog: Any) -> None:
    with Scheduler(2, stealing=False) as scheduler:
        victim = scheduler.contexts[0]
        begun, goes_on = threading.Event(), threading.Event()

        async def hold_up_and_die() -> None:
            begun.set()
            goes_on.wait(10)
            await die()

        dying = scheduler.submit(hold_up_and_die(), context=victim)
        assert begun.wait(10)
        jobs = [scheduler.submit(asyncio.sleep(0), context=victim) for _ in range(5)]
        goes_on.set()
        assert dying.result(10) is None
        for job in jobs:
            with pytest.raises(ContextDied, match=DEATH):
                job.result(10)
        assert scheduler.join(10)


def test_death_of_a_context_spares_the_others(engine: str) -> None:
    with Scheduler(2) as scheduler:
        victim, other = scheduler.contexts

        async def wait_for(job: Any) -> str:
            with pytest.raises(ContextDied) as raised:
                await job
            assert raised.value.__cause__ is victim.error
            return current_context().name  # type: ignore[union-attr]

        running = scheduler.submit(asyncio.sleep(100), context=victim)
        waiting = scheduler.submit(wait_for(running), context=other)
        kill(scheduler, victim)
        assert waiting.result(10) == other.name
        assert scheduler.stop().dead == [victim]


def test_job_that_ended_in_its_contexts_last_turn_keeps_its_result(engine: str) -> None:
    with Scheduler(1) as scheduler:
        (victim,) = scheduler.contexts
        jobs: list[Any] = []

        async def end_and_die() -> None:
            async def end() -> int:
                return 1

            jobs.extend([scheduler.submit(end()), scheduler.submit(die())])

        scheduler.submit(end_and_die()).result(10)
        victim.thread.join(10)
        assert jobs[0].result(10) == 1
        assert jobs[1].result(10) is None
