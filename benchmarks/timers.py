"""Whether timers are true, and what an idle loop does."""

from __future__ import annotations

import asyncio
import resource
import statistics
import time


def truth(
    loop: asyncio.AbstractEventLoop, seconds: float, sleeps: int = 10_000, tasks: int = 20
) -> dict[str, float]:
    """`sleeps` sleeps of 0.2 to 5 ms in `tasks` tasks, measured on the monotonic clock, never on the
    loop's own.
    """
    lateness: list[float] = []
    clock = time.monotonic_ns

    async def sleeper(number: int) -> None:
        for index in range(sleeps // tasks):
            delay = 0.0002 + ((number * 7919 + index * 104_729) % 4_801) * 1e-6
            start = clock()
            await asyncio.sleep(delay)
            lateness.append((clock() - start) * 1e-9 - delay)

    async def sleepers() -> None:
        await asyncio.gather(*[sleeper(number) for number in range(tasks)])

    loop.run_until_complete(sleepers())
    lateness.sort()
    return {
        "median": max(statistics.median(lateness), 1e-9),
        "p99": max(lateness[len(lateness) * 99 // 100], 1e-9),
        "early": sum(late < 0 for late in lateness),
        "earliest": -lateness[0] if lateness[0] < 0 else 0.0,
    }


def idle(loop: asyncio.AbstractEventLoop, seconds: float) -> dict[str, float]:
    """One second with nothing to do: how often any thread of the process went to sleep anew, and the
    CPU it took.
    """
    loop.run_until_complete(asyncio.sleep(0.05))
    before, cpu = resource.getrusage(resource.RUSAGE_SELF), time.process_time()
    loop.run_until_complete(asyncio.sleep(1.0))
    after = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "cpu": time.process_time() - cpu,
        "wakes": max(0, after.ru_nvcsw - before.ru_nvcsw - 1),  # one is the end of the sleep itself
    }
