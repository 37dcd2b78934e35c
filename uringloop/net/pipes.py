"""Pipes: asyncio's own transports for FIFOs, terminals, character devices and sockets, on our readiness.

They run per read and per write, but those are few and cheap compared with what a pipe's other end does."""

from __future__ import annotations

from asyncio import unix_events
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uringloop.loop import EventLoop


def make_read_pipe_transport(
    loop: EventLoop, pipe: Any, protocol: Any, waiter: Any = None, extra: Any = None
) -> Any:
    return unix_events._UnixReadPipeTransport(loop, pipe, protocol, waiter, extra)  # type: ignore[attr-defined]


def make_write_pipe_transport(
    loop: EventLoop, pipe: Any, protocol: Any, waiter: Any = None, extra: Any = None
) -> Any:
    return unix_events._UnixWritePipeTransport(loop, pipe, protocol, waiter, extra)  # type: ignore[attr-defined]
