"""Operations that belong together, on a descriptor of their own. Whoever waits for them may be cancelled at once; they
close and remove what they have made only when the kernel has ended what it does with it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from uringloop._core.awaited.file_op import FileOp, when_ended
from uringloop.files.loops import running_loop


async def run_apart(sequence: Coroutine[Any, Any, Any]) -> Any:
    """In a task of its own."""
    task = running_loop().create_task(sequence)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        task.add_done_callback(_looked_at)
        raise


def _looked_at(task: asyncio.Task[Any]) -> None:
    """Nobody waits for it any more: that it failed is no error either."""
    if not task.cancelled():
        task.exception()


async def to_the_end(op: FileOp) -> Any:
    """Its result. Cancelled, the operation is ended first; being cancelled again does not change that."""
    try:
        return await op
    except asyncio.CancelledError:
        ended = when_ended(op)
        while ended is not None and not ended.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([ended])
        raise
