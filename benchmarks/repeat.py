"""How the inner part of a sample is timed: batches until the time is up, the median batch counts.

The median batch, not the sum: a batch in which another process had the core is an accident of the machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable


async def rate_of(batch: Callable[[], Awaitable[object]], operations: int, seconds: float) -> float:
    """Operations per second of the median batch.

    One batch before the clock starts warms caches and free lists.
    """
    await batch()
    clock = time.perf_counter
    rates: list[float] = []
    start = end = clock()
    while end - start < seconds or len(rates) < 3:
        before = clock()
        await batch()
        end = clock()
        rates.append(operations / (end - before))
    return statistics.median(rates)


def rate_of_calls(batch: Callable[[], object], operations: int, seconds: float) -> float:
    """The same for a batch that runs the loop itself."""
    batch()
    clock = time.perf_counter
    rates: list[float] = []
    start = end = clock()
    while end - start < seconds or len(rates) < 3:
        before = clock()
        batch()
        end = clock()
        rates.append(operations / (end - before))
    return statistics.median(rates)
