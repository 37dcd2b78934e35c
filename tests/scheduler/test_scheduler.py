"""Scheduler: every job runs once, on some context, or its submitter is told; and everything ends."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import threading
import time
from collections import Counter
from contextlib import aclosing
from typing import Any

import pytest

import uringloop
from tests.scheduler.dying import DEATH, kill
from uringloop.errors import ContextDied, SchedulerFull
from uringloop.scheduler import Context, Scheduler, current_context


async def where(*_: Any) -> str:
    context = current_context()
    assert context is not None
    assert asyncio.get_running_loop() is context.loop
    assert threading.current_thread() is context.thread
    return context.name


async def nothing() -> None:
    pass


def test_job_runs_on_a_context(scheduler: Scheduler) -> None:
    assert scheduler.submit(where()).result(10).startswith("test-")
    assert scheduler.submit(where, 1, 2).result(10).startswith("test-")
    assert current_context() is None


def test_name_is_the_threads(scheduler: Scheduler) -> None:
    async def look() -> tuple[str, str]:
        with open(f"/proc/self/task/{threading.get_native_id()}/comm") as file:
            return threading.current_thread().name, file.read().strip()

    assert scheduler.submit(look, context=scheduler.contexts[1]).result(10) == ("test-1", "test-1")


def test_map_broadcast_many_and_sync(scheduler: Scheduler) -> None:
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    assert list(scheduler.map(double, range(100))) == [2 * number for number in range(100)]
    assert sorted(job.result(10) for job in scheduler.broadcast(where)) == ["test-0", "test-1", "test-2"]
    assert len([job.result(10) for job in scheduler.submit_many(where() for _ in range(50))]) == 50
    assert scheduler.run_sync(threading.current_thread).result(10).name.startswith("test-sync")
    with pytest.raises(ZeroDivisionError):
        scheduler.run_sync(lambda: 1 / 0).result(10)


def test_join_waits_for_what_jobs_submit(scheduler: Scheduler) -> None:
    ended = []

    async def spread(depth: int) -> None:
        await asyncio.sleep(0)
        if depth:
            for _ in range(3):
                scheduler.submit(spread, depth - 1)
        ended.append(depth)

    scheduler.submit(spread, 5)
    assert scheduler.join(30)
    assert len(ended) == sum(3**depth for depth in range(6))
    assert not scheduler.submit(asyncio.sleep(0.2)).done()
    assert not scheduler.join(0.001)
    asyncio.run(scheduler.join_async())
    assert scheduler.statistics()["pending"] == 0


def test_burst_on_one_context_is_stolen_by_others(engine: str) -> None:
    with Scheduler(3, dispatch=lambda contexts, key: contexts[0]) as scheduler:

        async def work() -> str:
            time.sleep(0.002)
            return await where()

        names = Counter(job.result(20) for job in scheduler.submit_many(work() for _ in range(90)))
        assert len(names) == 3
        assert scheduler.statistics()["stolen"] > 10


@pytest.mark.parametrize("how", ["key", "context", "off"])
def test_pinned_jobs_are_not_stolen(engine: str, how: str) -> None:
    with Scheduler(3, dispatch=lambda contexts, key: contexts[0], stealing=how != "off") as scheduler:
        order = []

        async def work(number: int) -> str:
            time.sleep(0.0005)
            order.append(number)
            return await where()

        options: dict[str, Any] = {"key": {"key": "k"}, "context": {"context": scheduler.contexts[0]}}.get(
            how, {}
        )
        jobs = [scheduler.submit(work, number, **options) for number in range(50)]
        assert len({job.result(20) for job in jobs}) == 1
        assert order == list(range(50))
        assert scheduler.statistics()["stolen"] == 0


def test_max_pending_raises_or_waits(engine: str, loop: Any) -> None:
    with Scheduler(2, max_pending=3) as scheduler:
        goes_on = uringloop.Event()
        jobs = [scheduler.submit(goes_on.wait()) for _ in range(3)]
        with pytest.raises(SchedulerFull):
            scheduler.submit(where())

        async def more() -> str:
            waiting = asyncio.create_task(scheduler.submit_async(where()))
            await asyncio.sleep(0.01)
            assert not waiting.done()
            goes_on.set()
            return await (await waiting)

        loop.run_until_complete(more())
        assert all(job.result(10) for job in jobs)
        assert sum(1 for _ in scheduler.map(where, range(2))) == 2


def test_submit_in_each_state(engine: str) -> None:
    scheduler = Scheduler(2)
    with pytest.raises(RuntimeError, match="the scheduler is new"):
        scheduler.submit(where())
    scheduler.start()
    with pytest.raises(RuntimeError, match="start only once"):
        scheduler.start()
    with pytest.raises(TypeError):
        scheduler.submit(print)  # type: ignore[arg-type]
    goes_on, inner = uringloop.Event(), []

    async def outer() -> None:
        await goes_on.wait()
        inner.append(scheduler.submit(where()))  # of our own: accepted while stopping

    scheduler.submit(outer())
    stopping = threading.Thread(target=scheduler.stop)
    stopping.start()
    while scheduler.statistics()["state"] != "stopping":
        time.sleep(0.001)
    with pytest.raises(RuntimeError, match="the scheduler is stopping"):
        scheduler.submit(where())
    goes_on.set()
    stopping.join(10)
    assert inner[0].result().startswith("uringloop-")
    with pytest.raises(RuntimeError, match="the scheduler is stopped"):
        scheduler.submit(where())
    with pytest.raises(RuntimeError, match="the scheduler is stopped"):
        scheduler.run_sync(print)
    assert scheduler.stop().cancelled == 0


def test_stop_cancels_what_does_not_finish_and_names_what_does_not_end(engine: str) -> None:
    scheduler = Scheduler(2)
    scheduler.start()
    cleaned = []

    async def sleeps() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(0)
            cleaned.append(1)

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                pass

    jobs = [scheduler.submit(sleeps()) for _ in range(4)]
    bad = scheduler.submit(stubborn())
    report = scheduler.stop(timeout=0.05, grace=0.1)
    assert all(job.cancelled() for job in jobs)
    assert cleaned == [1] * 4
    assert report.cancelled == 5
    assert report.abandoned == [bad]
    with pytest.raises(RuntimeError, match="abandoned"):
        bad.result()
    del bad, report
    gc.collect()


def test_dead_context_fails_its_jobs_and_the_others_go_on(engine: str, caplog: Any) -> None:
    with Scheduler(3) as scheduler:
        victim = scheduler.contexts[1]
        running = scheduler.submit(asyncio.sleep(100), context=victim)
        kill(scheduler, victim)
        with pytest.raises(ContextDied, match=DEATH) as raised:
            running.result(10)
        assert raised.value.__cause__ is victim.error
        with pytest.raises(RuntimeError, match="takes no jobs"):
            scheduler.submit(where(), context=victim)
        names = {job.result(10) for job in scheduler.submit_many(where() for _ in range(20))}
        assert victim.name not in names
        report = scheduler.stop()
        assert report.dead == [victim]
    assert "died" in caplog.text


def test_hooks_run_on_each_context(engine: str) -> None:
    log: list[tuple[str, str]] = []

    def start(context: Context) -> None:
        assert current_context() is context
        log.append(("start", context.name))

    def stop(context: Context) -> None:
        log.append(("stop", threading.current_thread().name))

    with Scheduler(2, on_start=start, on_stop=stop):
        assert log == [("start", "uringloop-0"), ("start", "uringloop-1")]
    assert sorted(log[2:]) == [("stop", "uringloop-0"), ("stop", "uringloop-1")]


def test_start_hook_that_raises_ends_what_was_started(engine: str, caplog: Any) -> None:
    def start(context: Context) -> None:
        if context.name.endswith("1"):
            raise ZeroDivisionError

    scheduler = Scheduler(3, on_start=start)
    with pytest.raises(ZeroDivisionError):
        scheduler.start()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("uringloop")]


def test_pins_each_context_to_a_cpu(engine: str) -> None:
    async def cpus() -> set[int]:
        return os.sched_getaffinity(0)

    before = os.sched_getaffinity(0)
    with Scheduler(2, pin=True) as scheduler:
        found = [job.result(10) for job in scheduler.broadcast(cpus)]
        assert all(len(cpus) == 1 for cpus in found)
    assert os.sched_getaffinity(0) == before


def test_stop_from_its_own_context_raises(scheduler: Scheduler) -> None:
    async def stop() -> None:
        scheduler.stop()

    with pytest.raises(RuntimeError, match="cannot wait"):
        scheduler.submit(stop()).result(10)


def test_async_with(engine: str, loop: Any) -> None:
    async def main() -> str:
        async with Scheduler(2) as scheduler:
            return await scheduler.submit(where())

    assert loop.run_until_complete(main()).startswith("uringloop-")
    loop.run_until_complete(loop.shutdown_default_executor())


def test_exception_in_the_with_block_cancels(engine: str) -> None:
    start = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        with Scheduler(2) as scheduler:
            job = scheduler.submit(asyncio.sleep(100))
            raise ZeroDivisionError
    assert job.cancelled()
    assert time.monotonic() - start < 5


def test_submit_racing_with_stop_runs_or_raises(engine: str) -> None:
    for _ in range(20):
        scheduler = Scheduler(2)
        scheduler.start()
        ran, accepted, refused = itertools.count(), [], []

        async def work(ran: Any = ran) -> None:
            next(ran)

        def submit(
            scheduler: Scheduler = scheduler, accepted: Any = accepted, refused: Any = refused
        ) -> None:
            try:
                for _ in range(1000):
                    accepted.append(scheduler.submit(work()))
            except RuntimeError:
                refused.append(1)

        threads = [threading.Thread(target=submit) for _ in range(2)]
        for thread in threads:
            thread.start()
        while len(accepted) < 10:
            pass
        scheduler.stop()
        for thread in threads:
            thread.join()
        assert next(ran) == len(accepted)
        assert all(job.done() and not job.cancelled() for job in accepted)


def test_statistics_add_up(scheduler: Scheduler) -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    jobs: list[Any] = scheduler.submit_many(where() for _ in range(30))
    jobs += [scheduler.submit(fail()) for _ in range(3)]
    slow = scheduler.submit(asyncio.sleep(100))
    for job in jobs:
        job.exception(10)
    slow.cancel()
    assert scheduler.join(10)
    found = scheduler.statistics()
    assert (found["submitted"], found["done"], found["failed"]) == (34, 30, 3)
    assert found["queued"] == found["running"] == found["pending"] == 0
    assert len(found["contexts"]) == 3
    for what in ("stolen", "wakes", "sleeps", "busy"):
        assert found[what] == sum(one[what] for one in found["contexts"])
    assert all(0 <= one["busy"] <= 1.5 and one["sleeps"] >= 0 for one in found["contexts"])
    assert repr(scheduler) == "<Scheduler test running contexts=3 pending=0>"


@pytest.mark.engines("uring", "epoll")
def test_idle_contexts_sleep_until_there_is_work_or_the_end(engine: str) -> None:
    with Scheduler(3) as scheduler:
        for job in scheduler.broadcast(nothing):
            job.result(10)

        def sleeps() -> list[int]:
            return [context["sleeps"] for context in scheduler.statistics()["contexts"]]

        quiet = False
        while not quiet:
            before = sleeps()
            time.sleep(0.2)
            quiet = sleeps() == before
        assert scheduler.submit(where()).result(10)
        scheduler.stop()


def sleeping(scheduler: Scheduler) -> list[dict[str, Any]]:
    """The contexts' statistics, once all of them sleep."""
    before: list[Any] = []
    while True:
        found: list[Any] = scheduler.statistics()["contexts"]
        if [one["sleeps"] for one in found] == before:
            return found
        before = [one["sleeps"] for one in found]
        time.sleep(0.02)


@pytest.mark.engines("uring", "epoll")
def test_batch_wakes_each_context_once(engine: str) -> None:
    with Scheduler(2, stealing=False) as scheduler:
        before = sleeping(scheduler)
        for job in scheduler.submit_many(nothing() for _ in range(200)):
            job.result(10)
        after = sleeping(scheduler)
        assert [b["wakes"] - a["wakes"] for a, b in zip(before, after, strict=True)] == [1, 1]


def test_batch_is_spread_by_load(engine: str) -> None:
    with Scheduler(2, dispatch="least_loaded", stealing=False) as scheduler:

        async def where() -> str:
            context = current_context()
            assert context is not None
            return context.name

        jobs = scheduler.submit_many(where() for _ in range(40))
        assert set(Counter(job.result(10) for job in jobs).values()) == {20}


@pytest.mark.filterwarnings("error")
def test_batch_is_accepted_as_a_whole_or_not_at_all(engine: str) -> None:
    ran: list[int] = []

    async def run() -> None:
        ran.append(1)

    with Scheduler(2, max_pending=4) as scheduler:
        with pytest.raises(SchedulerFull):
            scheduler.submit_many([run() for _ in range(9)])
        with pytest.raises(TypeError):
            scheduler.submit_many([run(), run(), 3, run()])  # type: ignore[arg-type]
        assert scheduler.join(10)
        assert ran == []
        assert scheduler.statistics()["queued"] == 0
        assert len(scheduler.submit_many([run() for _ in range(4)])) == 4
        assert scheduler.join(10)
        assert len(ran) == 4
    with pytest.raises(RuntimeError, match="stopped"):
        scheduler.submit_many([run(), run()])


def test_functions_count_as_pending_too(engine: str) -> None:
    with Scheduler(1, max_pending=2) as scheduler:
        opened = threading.Event()
        jobs = [scheduler.run_sync(opened.wait, 10) for _ in range(2)]
        with pytest.raises(SchedulerFull):
            scheduler.run_sync(opened.wait, 10)
        with pytest.raises(SchedulerFull):
            scheduler.submit(nothing())
        opened.set()
        assert all(job.result(10) for job in jobs)
        assert scheduler.join(10)
        jobs = [scheduler.run_sync(lambda: True) for _ in range(2)]
        assert all(job.result(10) for job in jobs)


def test_map_async(engine: str, loop: Any) -> None:
    async def double(number: int, add: int) -> int:
        await asyncio.sleep(0)
        return 2 * number + add

    async def main() -> None:
        async with Scheduler(2, max_pending=3) as scheduler:
            found = [value async for value in scheduler.map_async(double, range(20), range(20))]
            assert found == [3 * number for number in range(20)]
            ended = uringloop.Event()

            async def wait(number: int) -> int:
                if number:
                    await ended.wait()
                return number

            async with aclosing(scheduler.map_async(wait, range(3))) as results:
                async for value in results:
                    assert value == 0
                    break
            await scheduler.join_async()  # the others were cancelled
            assert not ended.is_set()

    loop.run_until_complete(main())


@pytest.mark.parametrize("stealing", [False, True])
def test_join_waits_for_what_callbacks_submit(engine: str, stealing: bool) -> None:
    with Scheduler(2, stealing=stealing) as scheduler:
        ended: list[int] = []

        async def last() -> None:
            await asyncio.sleep(0)
            ended.append(1)

        async def first() -> None:
            # Runs when the coroutine is over: the job is not done before what it had called soon has run.
            asyncio.get_running_loop().call_soon(lambda: scheduler.submit(last))

        def by_callback(job: Any) -> None:
            scheduler.submit(last)

        for round in range(50):
            scheduler.submit(first)
            scheduler.submit(nothing).add_done_callback(by_callback)
            scheduler.run_sync(lambda: scheduler.submit(last))
            assert scheduler.join(10)
            assert len(ended) == 3 * (round + 1)
