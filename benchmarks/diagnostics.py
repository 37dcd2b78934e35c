"""The cost of an observer: nothing before the first one, and nothing again after the last one has ended."""

from __future__ import annotations

import asyncio
import statistics

from benchmarks.turn import chain

TURNS = 5


def watched(loop: asyncio.AbstractEventLoop, seconds: float) -> dict[str, float]:
    """A chain of call_soon before there is an observer; then alternately with one and without."""
    from uringloop._core.loop.monitor import OPERATIONS, TIMES
    from uringloop.inspect.observers import Observer

    each = seconds / TURNS / 2
    never = chain(loop, each * 2)["rate"]
    looked, after = [], []
    for _ in range(TURNS):
        with Observer(TIMES | OPERATIONS, loop):
            looked.append(chain(loop, each)["rate"])
        after.append(chain(loop, each)["rate"])
    return {
        "cost": 1 / never,
        "with an observer": 1 / statistics.median(looked),
        "afterwards": 1 / statistics.median(after),
    }


def debugged(loop: asyncio.AbstractEventLoop, seconds: float) -> dict[str, float]:
    """The same before debug mode is turned on, in it, and once it is off again."""
    found = {"cost": 1 / chain(loop, seconds)["rate"]}
    for name, on in (("debug mode on", True), ("afterwards", False)):
        loop.set_debug(on)
        found[name] = 1 / chain(loop, seconds)["rate"]
    return found
