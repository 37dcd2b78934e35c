"""A lock that is handed on, on one loop and across loops, and jobs handed to another loop. Each loop with what its
users have: ours with uringloop.Lock and Scheduler; the others with asyncio.Lock on one loop, and across loops with
aiologic or multiloop (PyPI) and run_coroutine_threadsafe."""

from __future__ import annotations

import asyncio
import importlib
import threading
import time
from collections.abc import Callable
from typing import Any

from benchmarks.repeat import rate_of
from benchmarks.row import Skipped


def lock_of(loop: asyncio.AbstractEventLoop, library: str, across: bool) -> Any:
    if library == "own":
        ours = type(loop).__module__.startswith("uringloop")
        library = "uringloop" if ours else "aiologic" if across else "asyncio"
    try:
        return importlib.import_module(library).Lock()
    except ImportError:
        raise Skipped(f"{library} is not installed") from None


def uncontended(loop: asyncio.AbstractEventLoop, seconds: float, library: str = "own") -> dict[str, float]:
    lock, batch = lock_of(loop, library, False), 10_000

    async def pairs() -> None:
        for _ in range(batch):
            async with lock:
                pass

    return {"rate": loop.run_until_complete(rate_of(pairs, batch, seconds))}


def contended(
    loop: asyncio.AbstractEventLoop, seconds: float, library: str = "own", tasks: int = 10
) -> dict[str, float]:
    """Each holds the lock over one turn, so that all the others wait."""
    lock, each = lock_of(loop, library, False), 200

    async def use() -> None:
        for _ in range(each):
            async with lock:
                await asyncio.sleep(0)

    async def all_of_them() -> None:
        await asyncio.gather(*[use() for _ in range(tasks)])

    return {"rate": loop.run_until_complete(rate_of(all_of_them, tasks * each, seconds))}


class Across:
    """Tasks on several loops that hand one lock on until time is over. Counted is each time that another task
    than before has it, from when all have begun: a loop that keeps the others from running counts nothing."""

    def __init__(self, lock: Any, tasks: int) -> None:
        self.lock, self.tasks = lock, tasks
        self.going = self.over = False
        self.ready = threading.Semaphore(0)
        self.count = 0  # under the lock, as the next
        self.last: object = None

    async def use(self) -> None:
        me = object()
        while not self.going:
            await asyncio.sleep(0.001)
        while not self.over:
            async with self.lock:
                self.count += self.last is not me
                self.last = me
                await asyncio.sleep(0)

    async def main(self) -> None:
        tasks = [asyncio.ensure_future(self.use()) for _ in range(self.tasks)]
        await asyncio.sleep(0.005)
        self.ready.release()
        await asyncio.gather(*tasks)


def across(
    loop: asyncio.AbstractEventLoop, seconds: float, library: str = "own", loops: int = 2, tasks: int = 1
) -> dict[str, float]:
    work = Across(lock_of(loop, library, True), tasks)
    others = [type(loop)() for _ in range(loops - 1)]

    def drive(other: asyncio.AbstractEventLoop) -> None:
        other.run_until_complete(work.main())
        other.close()

    def clock() -> float:
        for _ in range(loops):
            work.ready.acquire()
        work.going, start = True, time.perf_counter()
        time.sleep(seconds)
        rates.append(work.count / (time.perf_counter() - start))
        work.over = True
        return 0.0

    rates: list[float] = []
    threads = [threading.Thread(target=drive, args=(other,)) for other in others]
    threads.append(threading.Thread(target=clock))
    for thread in threads:
        thread.start()
    loop.run_until_complete(work.main())
    for thread in threads:
        thread.join()
    return {"rate": rates[0]}


def jobs(
    loop: asyncio.AbstractEventLoop, seconds: float, library: str = "own", in_flight: int = 100
) -> dict[str, float]:
    """Coroutines handed to another loop and awaited on this one: by Scheduler on our loops, else by
    run_coroutine_threadsafe; by multiloop's pool of one thread if it is asked for."""
    each = 20

    async def nothing() -> None:
        pass

    async def many(call: Callable[[], Any]) -> None:
        async def one() -> None:
            for _ in range(each):
                await call()

        await asyncio.gather(*[one() for _ in range(in_flight)])

    async def through_a_pool(pool_of: Any) -> float:
        async with pool_of(num_threads=1, loop_factory=type(loop)) as pool:
            return await rate_of(lambda: many(lambda: pool.submit(nothing)), each * in_flight, seconds)

    if library == "multiloop":
        try:
            pool_of = importlib.import_module(library).EventLoopThreadPool
        except ImportError:
            raise Skipped(f"{library} is not installed") from None
        return {"rate": loop.run_until_complete(through_a_pool(pool_of))}

    def measure(call: Callable[[], Any]) -> dict[str, float]:
        return {"rate": loop.run_until_complete(rate_of(lambda: many(call), each * in_flight, seconds))}

    if type(loop).__module__.startswith("uringloop"):
        from uringloop import Scheduler

        with Scheduler(1) as scheduler:
            return measure(lambda: scheduler.submit(nothing))
    other = type(loop)()
    thread = threading.Thread(target=other.run_forever)
    thread.start()
    try:
        return measure(lambda: asyncio.wrap_future(asyncio.run_coroutine_threadsafe(nothing(), other)))
    finally:
        other.call_soon_threadsafe(other.stop)
        thread.join()
        other.close()
