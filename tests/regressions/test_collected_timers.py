"""The collector frees a loop that was dropped unclosed, though its tasks wait for timers whose handles they keep."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import uringloop

Program = Callable[..., subprocess.CompletedProcess[str]]


async def sleeps() -> None:
    await asyncio.sleep(3600)


async def waits() -> None:
    await asyncio.wait_for(asyncio.get_running_loop().create_future(), 3600)


async def is_timed() -> None:
    async with asyncio.timeout(3600):
        await asyncio.get_running_loop().create_future()


@pytest.mark.contract
@pytest.mark.parametrize("pending", [sleeps, waits, is_timed])
def test_a_loop_dropped_with_a_pending_timer_is_collected(engine: str, pending: Any) -> None:
    async def main() -> None:
        task = asyncio.ensure_future(pending())
        await asyncio.sleep(0.001)
        assert not task.done()
        task._log_destroy_pending = False  # type: ignore[attr-defined]

    loop = asyncio.new_event_loop() if engine == "asyncio" else uringloop.new_event_loop()
    loop.run_until_complete(main())
    gone = weakref.ref(loop)
    del loop
    with pytest.warns(ResourceWarning, match="unclosed event loop") as caught:
        gc.collect()
    caught.clear()  # a warning has what it is about
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("closes", [True, False])
def test_a_kept_timer_of_a_collected_loop_never_shows_cleared_objects(
    engine: str, program: Program, closes: bool
) -> None:
    """Whether the loop's finalizer closes it or not. Another finalizer looks through the handle, at either time."""
    program(
        """
import gc, sys, warnings, weakref
from uringloop.loop import EventLoop

warnings.simplefilter("ignore")

class NeverClosed(EventLoop):
    def __del__(self):
        pass

class Target:
    def __init__(self, loop):
        self.loop, self.own = loop, {"intact": [self]}
    def called(self):
        raise AssertionError("it was to be called in an hour")

class Witness:
    def __del__(self):
        callback = kept[-1]._callback
        seen.append(callback is None or callback.__self__.own["intact"][0] is callback.__self__)

kept, seen = [], []

def abandon(kind, first):
    loop = kind()
    if first:
        witness = Witness()
    target = Target(loop)
    if not first:
        witness = Witness()
    witness.cycle = target.witness = witness
    kept.append(loop.call_later(3600, target.called))
    loop.call_soon(loop.stop)
    loop.run_forever()
    return weakref.ref(loop), weakref.ref(target)

gc.disable()
for first in (True, False):
    loop, target = abandon(EventLoop if sys.argv[1] == "True" else NeverClosed, first)
    for _ in range(3):
        gc.collect()
    assert loop() is None and target() is None
    assert kept[-1]._callback is None
    kept[-1]._run()
    kept[-1].cancel()
assert seen == [True, True]
""",
        str(closes),
    )
