"""sock_connect: the only sock_* coroutine that may need a resolver. The others are compiled
(`_core.awaitables.sock_op`)."""

from __future__ import annotations

import _socket
import asyncio
import errno
import socket
from asyncio import base_events
from typing import TYPE_CHECKING, Any

from uringloop._core.awaitables.sock_op import until_sock_writable

if TYPE_CHECKING:
    from uringloop.loop import EventLoop

# Plain numbers: the properties of socket.socket look up enum members, and loops in several threads of a free-threaded
# Python wait for each other there.
_family, _type = _socket.socket.family.__get__, _socket.socket.type.__get__
_INET, _UNIX = (int(socket.AF_INET), int(socket.AF_INET6)), int(socket.AF_UNIX)

# connect() fails at once while a Unix listener's queue is full, and the kernel doesn't report when there is room again.
_FULL_QUEUE_PAUSE = 0.001


def check_sock(loop: EventLoop, sock: socket.socket) -> None:
    """Make the checks that asyncio makes before each sock_* call."""
    base_events._check_ssl_socket(sock)  # type: ignore[attr-defined]
    if loop._debug and sock.gettimeout() != 0:
        raise ValueError("the socket must be non-blocking")


async def sock_connect(loop: EventLoop, sock: socket.socket, address: Any) -> None:
    check_sock(loop, sock)
    plain = type(sock) is socket.socket
    family, kind = (_family(sock), _type(sock)) if plain else (sock.family, sock.type)
    if family in _INET:
        found = await loop._ensure_resolved(address, family=family, type=kind, proto=sock.proto, loop=loop)
        address = found[0][4]
    while True:
        try:
            sock.connect(address)
            return
        except InterruptedError:
            break
        except BlockingIOError as error:
            if error.errno != errno.EAGAIN or family != _UNIX:
                break
        await asyncio.sleep(_FULL_QUEUE_PAUSE)
    loop._ensure_fd_no_transport(sock)
    await until_sock_writable(loop, sock)
    failed = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if failed:
        raise OSError(failed, f"Connect call failed {address}")
