"""Primitives and scheduler under real threads for a while: URINGLOOP_STRESS_SECONDS each (3), on every build; it is
free-threaded Pythons that this is for. What is lost shows as a wrong sum, or a hang."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import resource
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import uringloop
from uringloop._core.lifetime.counters import DEBUG_BUILD
from uringloop.scheduler import Scheduler

pytestmark = pytest.mark.stress

SECONDS = float(os.environ.get("URINGLOOP_STRESS_SECONDS", "3"))
LOOPS = 4


def everywhere(work: Callable[[random.Random], Any], plain: Callable[[random.Random], object] | None) -> None:
    """Run `work` in many tasks on several loops, ours and asyncio's, and `plain` in threads, until time is over."""
    errors: list[BaseException] = []

    def body(number: int) -> None:
        chance = random.Random(number)

        async def main() -> None:
            await asyncio.gather(*[work(chance) for _ in range(8)])

        factory = asyncio.new_event_loop if number == LOOPS - 1 else uringloop.new_event_loop
        try:
            with asyncio.Runner(loop_factory=factory) as runner:
                runner.run(main())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=body, args=(number,)) for number in range(LOOPS)]
    if plain is not None:
        threads += [threading.Thread(target=plain, args=(random.Random(number),)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS + 60)
        assert not thread.is_alive(), "it hangs"
    if errors:
        raise errors[0]


class Clock:
    def __init__(self) -> None:
        self.end = time.monotonic() + SECONDS

    def __bool__(self) -> bool:
        return time.monotonic() < self.end


@pytest.mark.parametrize("cancels", [False, True])
def test_lock_excludes(cancels: bool, engine: str) -> None:
    lock, clock, inside, total, entered = uringloop.Lock(), Clock(), 0, 0, [0] * 100

    async def once(slot: int) -> None:
        nonlocal inside, total
        async with lock:
            inside += 1
            try:
                assert inside == 1
                if slot % 3:
                    await asyncio.sleep(0)
                total += 1
                entered[slot] += 1
            finally:
                inside -= 1

    slots = iter(range(100))

    async def work(chance: random.Random) -> None:
        slot = next(slots)
        while clock:
            if cancels and chance.random() < 0.3:
                task = asyncio.create_task(once(slot))
                for _ in range(chance.randrange(4)):
                    await asyncio.sleep(0)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            else:
                await once(slot)

    def plain(chance: random.Random) -> None:
        nonlocal inside, total
        slot = next(slots)
        while clock:
            if lock.acquire_sync(chance.choice([None, 0.0001])):
                inside += 1
                assert inside == 1
                total += 1
                entered[slot] += 1
                inside -= 1
                lock.release()

    everywhere(work, plain)
    assert total == sum(entered) > 100
    assert not lock.locked()
    assert lock.waiting == 0


def test_semaphore_keeps_its_permits(engine: str) -> None:
    semaphore, clock = uringloop.BoundedSemaphore(3), Clock()

    async def work(chance: random.Random) -> None:
        while clock:
            with contextlib.suppress(asyncio.TimeoutError):
                async with asyncio.timeout(chance.choice([None, 0, 0.0001, 0.001])):
                    async with semaphore:
                        await asyncio.sleep(0)

    def plain(chance: random.Random) -> None:
        while clock:
            if semaphore.acquire_sync(chance.choice([None, 0, 0.0001])):
                semaphore.release()

    everywhere(work, plain)
    assert semaphore.statistics()["value"] == 3
    assert semaphore.waiting == 0


@pytest.mark.parametrize("kind", [uringloop.Queue, uringloop.LifoQueue, uringloop.PriorityQueue])
def test_queue_loses_nothing(kind: Any, engine: str) -> None:
    queue, clock = kind(5), Clock()
    put: list[int] = []
    got: list[int] = []

    async def work(chance: random.Random) -> None:
        while clock:
            with contextlib.suppress(asyncio.TimeoutError):
                async with asyncio.timeout(chance.choice([0.0001, 0.001, 0.01])):
                    if chance.random() < 0.5:
                        number = chance.getrandbits(60)
                        await queue.put(number)
                        put.append(number)
                    else:
                        got.append(await queue.get())

    def plain(chance: random.Random) -> None:
        while clock:
            with contextlib.suppress(TimeoutError):
                number = chance.getrandbits(60)
                queue.put_sync(number, 0.001)
                put.append(number)
            with contextlib.suppress(TimeoutError):
                got.append(queue.get_sync(0.001))

    everywhere(work, plain)
    while not queue.empty():
        got.append(queue.get_nowait())
    assert sorted(got) == sorted(put)
    assert len(got) > 100
    assert queue.statistics()["get"]["waiting"] == queue.statistics()["put"]["waiting"] == 0


def test_condition_loses_no_notification(engine: str) -> None:
    condition, clock, tokens, taken, given = uringloop.Condition(), Clock(), 0, 0, 0

    def some() -> int:
        return tokens

    async def work(chance: random.Random) -> None:
        nonlocal tokens, taken, given
        while clock:
            async with condition:
                if chance.random() < 0.5:
                    tokens += 1
                    given += 1
                    condition.notify()
                else:
                    with contextlib.suppress(asyncio.TimeoutError):
                        async with asyncio.timeout(chance.choice([0.001, 0.01])):
                            await condition.wait_for(some)
                            tokens -= 1
                            taken += 1

    everywhere(work, None)
    assert given == taken + tokens
    assert taken > 100
    assert not condition.locked()


def test_release_from_a_thread_between_try_and_wait(engine: str) -> None:
    there, back, clock, rounds = uringloop.AutoResetEvent(), uringloop.AutoResetEvent(), Clock(), 0

    async def ping() -> None:
        nonlocal rounds
        while clock:
            there.set()
            await back.wait()
            rounds += 1
        there.set()

    def pong() -> None:
        while clock:
            assert there.wait_sync(30)
            back.set()

    thread = threading.Thread(target=pong)
    thread.start()
    uringloop.run(ping())
    thread.join(30)
    assert rounds > 100


def test_many_jobs_through_four_contexts(engine: str) -> None:
    """A million on the engine that everybody gets; memory stays flat, nothing is lost, the stop is clean."""
    million = engine == "uring" and not DEBUG_BUILD
    count, batch, done = 1_000_000 if million else int(50_000 * SECONDS), 2_000, 0
    descriptors = len(os.listdir("/proc/self/fd"))

    async def work(number: int) -> int:
        if number % 7 == 0:
            await asyncio.sleep(0)
        return number

    with Scheduler(4, max_pending=2 * batch) as scheduler:
        memory = 0
        for start in range(0, count, batch):
            jobs = [scheduler.submit(work, number) for number in range(start, start + batch)]
            done += sum(job.result(60) == start + offset for offset, job in enumerate(jobs))
            if start == batch * 10:
                gc.collect()
                memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert scheduler.join(60)
        found = scheduler.statistics()
    assert done == found["done"] == found["started"] == found["submitted"] == count // batch * batch
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < memory + 20_000, "kilobytes"
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_loops_that_keep_each_other_busy_keep_join_waiting(engine: str) -> None:
    clock, hops = Clock(), 0

    with Scheduler(4) as scheduler:

        async def hop(left: int) -> None:
            nonlocal hops
            if clock and left:
                await asyncio.sleep(0)
                scheduler.submit(hop, left - 1)
                scheduler.submit(hop, 0)
            hops += 1

        while clock:
            before, hops = hops, 0
            jobs = 5
            for _ in range(jobs):
                scheduler.submit(hop, 50)
            assert scheduler.join(60)
            assert scheduler.statistics()["pending"] == 0
            assert before >= 0


def test_million_waiters_are_passed_over_without_recursion(engine: str) -> None:
    """All of one loop, which closes: a release finds nobody who could use it, one after the other."""
    lock, loop, waits = uringloop.Lock(), uringloop.new_event_loop(), []
    assert lock.acquire_nowait()

    async def stand() -> None:
        for _ in range(1_000_000):
            waits.append(lock.acquire().__await__())
            next(waits[-1])

    loop.run_until_complete(stand())
    assert lock.waiting == 1_000_000
    loop.close()
    lock.release()
    assert not lock.locked()
    assert lock.statistics()["passes"] == 1_000_000
