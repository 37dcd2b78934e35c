"""running_loop(): the running event loop, checked to be one of uringloop's."""

from __future__ import annotations

from asyncio.events import _get_running_loop
from typing import TYPE_CHECKING

from uringloop._core.loop.loop import Loop

if TYPE_CHECKING:
    from uringloop.loop import EventLoop


def running_loop() -> EventLoop:
    """Return the running loop. Raises RuntimeError if it is not one of uringloop's."""
    loop = _get_running_loop()
    if not isinstance(loop, Loop):
        what = (
            "no event loop is running"
            if loop is None
            else f"the running event loop is a {type(loop).__name__}"
        )
        raise RuntimeError(f"uringloop's files work on uringloop's event loop only: {what}")
    return loop  # type: ignore[return-value]
