"""The scheduling workloads: what one turn of a loop costs. Each takes a fresh loop and fills about
`seconds`.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time

from benchmarks.repeat import rate_of, rate_of_calls

BATCH = 10_000


def nothing() -> None:
    """The empty callback."""


def nothing_of_two(_first: int, _second: int) -> None:
    """The empty callback with two arguments."""


def call_soon(
    loop: asyncio.AbstractEventLoop, seconds: float, arguments: int = 0, batch: int = 100_000
) -> dict[str, float]:
    """`batch` call_soon of an empty Python function on a loop that does not run yet, then the run that
    empties it.

    So many handles at once do not fit the processor's caches and the allocators' free lists: a burst.
    """

    def burst() -> None:
        schedule = loop.call_soon
        if arguments:
            for _ in range(batch):
                schedule(nothing_of_two, 1, 2)
        else:
            for _ in range(batch):
                schedule(nothing)
        schedule(loop.stop)
        loop.run_forever()

    return {"rate": rate_of_calls(burst, batch, seconds)}


def call_soon_turns(
    loop: asyncio.AbstractEventLoop, seconds: float, arguments: int = 0, batch: int = 1_000
) -> dict[str, float]:
    """A running loop: `batch` call_soon, then the turn that runs them, again and again.

    Everything stays in the caches.
    """

    async def turns() -> None:
        schedule = loop.call_soon
        for _ in range(10):
            if arguments:
                for _ in range(batch):
                    schedule(nothing_of_two, 1, 2)
            else:
                for _ in range(batch):
                    schedule(nothing)
            await asyncio.sleep(0)

    return {"rate": loop.run_until_complete(rate_of(turns, 10 * batch, seconds))}


def chain(loop: asyncio.AbstractEventLoop, seconds: float, length: int = BATCH) -> dict[str, float]:
    """A callback that schedules itself: one callback per turn, so the whole turn is in the figure."""

    async def link() -> None:
        done = loop.create_future()
        schedule = loop.call_soon
        left = length

        def step() -> None:
            nonlocal left
            left -= 1
            if left:
                schedule(step)
            else:
                done.set_result(None)

        schedule(step)
        await done

    return {"rate": loop.run_until_complete(rate_of(link, length, seconds))}


def sleep_zero(loop: asyncio.AbstractEventLoop, seconds: float, batch: int = BATCH) -> dict[str, float]:
    """One task that awaits sleep(0) again and again: one task step and one turn each."""

    async def naps() -> None:
        sleep = asyncio.sleep
        for _ in range(batch):
            await sleep(0)

    return {"rate": loop.run_until_complete(rate_of(naps, batch, seconds))}


def gather(
    loop: asyncio.AbstractEventLoop, seconds: float, children: int = 100, suspend: bool = True
) -> dict[str, float]:
    """gather() of `children` coroutines that suspend once (or return at once); the figure is per child."""

    async def suspends() -> None:
        await asyncio.sleep(0)

    async def returns() -> None:
        pass

    child = suspends if suspend else returns

    async def family() -> None:
        for _ in range(20):
            await asyncio.gather(*[child() for _ in range(children)])

    return {"rate": loop.run_until_complete(rate_of(family, 20 * children, seconds))}


def named_tasks(loop: asyncio.AbstractEventLoop, seconds: float, children: int = 100) -> dict[str, float]:
    """create_task() of coroutines that return at once, with a name, as frameworks make them; the figure is per task."""

    async def returns() -> None:
        pass

    async def family() -> None:
        for _ in range(20):
            tasks = [loop.create_task(returns(), name="child") for _ in range(children)]
            await tasks[-1]

    return {"rate": loop.run_until_complete(rate_of(family, 20 * children, seconds))}


def future(loop: asyncio.AbstractEventLoop, seconds: float, batch: int = 5_000) -> dict[str, float]:
    """A task makes a future, asks call_soon to set it, and awaits it."""

    def settle(waiter: asyncio.Future[None]) -> None:
        waiter.set_result(None)

    async def waits() -> None:
        for _ in range(batch):
            waiter = loop.create_future()
            loop.call_soon(settle, waiter)
            await waiter

    return {"rate": loop.run_until_complete(rate_of(waits, batch, seconds))}


def call_later_cancel(
    loop: asyncio.AbstractEventLoop, seconds: float, batch: int = 10_000
) -> dict[str, float]:
    """`batch` timers of 10 s, then all of them cancelled, then a turn: many timeouts in force that
    never fire.
    """

    async def timeouts() -> None:
        later = loop.call_later
        handles = [later(10.0, nothing) for _ in range(batch)]
        for handle in handles:
            handle.cancel()
        await asyncio.sleep(0)

    return {"rate": loop.run_until_complete(rate_of(timeouts, batch, seconds))}


def call_later_cancel_now(
    loop: asyncio.AbstractEventLoop, seconds: float, batch: int = 1_000
) -> dict[str, float]:
    """Each timer of 10 s cancelled before the next is made, a turn of the loop every `batch`: one
    timeout at a time.
    """

    async def timeouts() -> None:
        later = loop.call_later
        for _ in range(batch):
            later(10.0, nothing).cancel()
        await asyncio.sleep(0)

    return {"rate": loop.run_until_complete(rate_of(timeouts, batch, seconds))}


def call_later_fired(
    loop: asyncio.AbstractEventLoop, seconds: float, batch: int = 100_000, pending: int = 0
) -> dict[str, float]:
    """`batch` call_later(0), all fired, the last one ends the batch; `pending` timers far in the
    future lie underneath.
    """

    async def fires() -> None:
        later = loop.call_later
        done = loop.create_future()
        for _ in range(batch - 1):
            later(0, nothing)
        later(0, done.set_result, None)
        await done

    far = far_timers(loop, pending)
    rate = loop.run_until_complete(rate_of(fires, batch, seconds))
    for handle in far:
        handle.cancel()
    return {"rate": rate, "cost": 1 / rate}


def far_timers(loop: asyncio.AbstractEventLoop, count: int) -> list[asyncio.TimerHandle]:
    """Timers an hour or more away, in scattered order: what idle connections' timeouts look like to
    the heap.
    """
    return [loop.call_later(3600 + (index * 7919) % 100_003 / 100, nothing) for index in range(count)]


def threadsafe_own(loop: asyncio.AbstractEventLoop, seconds: float, batch: int = 100_000) -> dict[str, float]:
    """call_soon_threadsafe from the loop's own thread, `batch` of them and then the turn that runs them."""

    async def hand_in() -> None:
        schedule = loop.call_soon_threadsafe
        for _ in range(batch):
            schedule(nothing)
        await asyncio.sleep(0)

    return {"rate": loop.run_until_complete(rate_of(hand_in, batch, seconds))}


def threadsafe_other(
    loop: asyncio.AbstractEventLoop, seconds: float, batch: int = 100_000
) -> dict[str, float]:
    """Another thread makes `batch` call_soon_threadsafe; timed until the loop has run the last of them."""
    stop = False
    wanted = threading.Semaphore(0)
    done: asyncio.Future[None]

    def other_thread() -> None:
        schedule = loop.call_soon_threadsafe
        while True:
            wanted.acquire()
            if stop:
                return
            finished = done
            for _ in range(batch - 1):
                schedule(nothing)
            schedule(finished.set_result, None)

    async def hand_in() -> None:
        nonlocal done
        done = loop.create_future()
        wanted.release()
        await done

    thread = threading.Thread(target=other_thread, daemon=True)
    thread.start()
    try:
        return {"rate": loop.run_until_complete(rate_of(hand_in, batch, seconds))}
    finally:
        stop = True
        wanted.release()
        thread.join(5)


def coroutine_threadsafe(
    loop: asyncio.AbstractEventLoop, seconds: float, one_core: bool = False
) -> dict[str, float]:
    """run_coroutine_threadsafe(...).result() one after the other from a thread: a round trip of two threads.

    On one core a wake-up is four times cheaper than across two, and where the kernel puts them is luck;
    `one_core` pins the process, to see that figure on purpose.
    """
    cores = os.sched_getaffinity(0)
    if one_core:
        os.sched_setaffinity(0, {min(cores)})
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def answer() -> int:
        return 1

    def ask(until: float) -> int:
        count = 0
        while time.perf_counter() < until:
            asyncio.run_coroutine_threadsafe(answer(), loop).result(10)
            count += 1
        return count

    try:
        ask(time.perf_counter() + seconds / 5)
        cpu, start = time.process_time(), time.perf_counter()
        count = ask(start + seconds)
        elapsed, cpu = time.perf_counter() - start, time.process_time() - cpu
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        os.sched_setaffinity(0, cores)
    return {"rate": count / elapsed, "cpu": cpu / elapsed}
