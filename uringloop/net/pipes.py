"""Pipes: asyncio's own pipe transports, on the loop's add_reader and add_writer. They serve FIFOs, terminals,
character devices and sockets.

Their Python code runs per read and write, but those are few, and cheap compared with the work at a pipe's other end."""

from __future__ import annotations

from asyncio import unix_events
from typing import TYPE_CHECKING, Any

from uringloop.inspect.creation import WarnsWithStack, creation_stack

if TYPE_CHECKING:
    from uringloop.loop import EventLoop


class ReadPipeTransport(WarnsWithStack, unix_events._UnixReadPipeTransport):  # type: ignore[name-defined,misc]
    pass


class WritePipeTransport(WarnsWithStack, unix_events._UnixWritePipeTransport):  # type: ignore[name-defined,misc]
    pass


def make_read_pipe_transport(
    loop: EventLoop, pipe: Any, protocol: Any, waiter: Any = None, extra: Any = None
) -> Any:
    transport = ReadPipeTransport(loop, pipe, protocol, waiter, extra)
    transport.made_at = creation_stack(loop)
    return transport


def make_write_pipe_transport(
    loop: EventLoop, pipe: Any, protocol: Any, waiter: Any = None, extra: Any = None
) -> Any:
    transport = WritePipeTransport(loop, pipe, protocol, waiter, extra)
    transport.made_at = creation_stack(loop)
    return transport
