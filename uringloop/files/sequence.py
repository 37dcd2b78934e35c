"""Sequences of operations that clean up after themselves. A task that waits for one can be cancelled at once; the
sequence then closes and removes what it has made, but only when the kernel has ended the operations on it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from uringloop._core.awaitables.file_op import FileOp, when_ended
from uringloop.files.loops import running_loop


async def run_apart(sequence: Coroutine[Any, Any, Any]) -> Any:
    """Run the sequence in a task of its own."""
    task = running_loop().create_task(sequence)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        task.add_done_callback(_looked_at)
        raise


def _looked_at(task: asyncio.Task[Any]) -> None:
    """Retrieve the exception, so that asyncio doesn't report it: the task that waited was cancelled."""
    if not task.cancelled():
        task.exception()


async def to_the_end(op: FileOp) -> Any:
    """Return the operation's result. If cancelled, even repeatedly, first wait until the operation has ended."""
    try:
        return await op
    except asyncio.CancelledError:
        ended = when_ended(op)
        while ended is not None and not ended.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([ended])
        raise
