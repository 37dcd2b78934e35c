"""EventLoopPolicy and install(): uringloop as the default event loop of asyncio programs."""

from __future__ import annotations

import asyncio
from asyncio import events, unix_events
from typing import Any

from uringloop.loop import EventLoop

# Python 3.14 deprecates policies, and renames the class that it still uses internally.
_StockPolicy: Any = getattr(unix_events, "_UnixDefaultEventLoopPolicy", None) or getattr(
    unix_events, "_DefaultEventLoopPolicy", None
)


class EventLoopPolicy(_StockPolicy):  # type: ignore[misc]
    """asyncio's default policy with uringloop's loops; for `asyncio.set_event_loop_policy`."""

    _loop_factory = EventLoop


def install() -> None:
    """Make every `asyncio.run` and `asyncio.new_event_loop` of this process use uringloop."""
    setter = getattr(events, "_set_event_loop_policy", None) or asyncio.set_event_loop_policy
    setter(EventLoopPolicy())
