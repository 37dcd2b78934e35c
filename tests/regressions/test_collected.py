"""The collector takes loops, waiters, buffers and files apart in any order: none of them uses what it has emptied, and
none loses what it was to give back."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

Program = Callable[..., subprocess.CompletedProcess[str]]


def test_a_granted_waiter_of_an_unclosed_loop(engine: str, program: Program) -> None:
    """ResourceWarning as an error ends asyncio's finalizer before it closes the loop."""
    program(
        """
import asyncio, gc, sys, warnings, uringloop

warnings.simplefilter("error", ResourceWarning)
sys.unraisablehook = lambda _: None

def abandon():
    loop = uringloop.new_event_loop()
    queue = uringloop.Queue()

    async def main():
        task = asyncio.ensure_future(queue.get())
        await asyncio.sleep(0)
        task._log_destroy_pending = False

    loop.run_until_complete(main())
    queue.put_nowait(1)  # granted: in the inbox of the loop, which does not run again

for _ in range(5):
    abandon()
    gc.collect()
""",
        PYTHONMALLOC="debug",
    )


def test_buffers_in_a_cycle_with_who_waits_for_one(engine: str, program: Program) -> None:
    program(
        """
import asyncio, gc, itertools, uringloop
from uringloop.files import FixedBuffers

def abandon(order):
    loop = uringloop.new_event_loop()

    async def main():
        buffers = FixedBuffers(1, 4096)
        view = await buffers.lend()
        task = asyncio.ensure_future(buffers.lend())
        await asyncio.sleep(0)
        task._log_destroy_pending = False
        parts = [view, task, buffers]
        kept = [parts[i] for i in order]
        kept.append(kept)

    loop.run_until_complete(main())
    loop.close()

gc.disable()
for order in itertools.permutations(range(3)):
    abandon(order)
    gc.collect()
""",
        PYTHONMALLOC="debug",
    )
