"""sendfile: from a regular file to a socket, inside the kernel. The checks, and the fallback that reads and sends, are
BaseEventLoop's own."""

from __future__ import annotations

import errno
import io
import os
import socket
from asyncio import exceptions
from typing import TYPE_CHECKING, Any

from uringloop._core.awaitables.sock_op import until_sock_writable

if TYPE_CHECKING:
    from uringloop.loop import EventLoop


async def sock_sendfile_native(
    loop: EventLoop, sock: socket.socket, file: Any, offset: int, count: int | None
) -> int:
    """Send, and return the number of bytes sent. Afterwards, also if cancelled, the file's position is behind them."""
    try:
        source = file.fileno()
    except (AttributeError, io.UnsupportedOperation):
        raise exceptions.SendfileNotAvailableError("not a regular file") from None
    try:
        size = os.fstat(source).st_size
    except OSError:
        raise exceptions.SendfileNotAvailableError("not a regular file") from None
    block = count or size
    if not block:
        return 0
    sent = 0
    waited = False
    try:
        while not count or sent < count:
            if count:
                block = count - sent
            try:
                moved = os.sendfile(sock.fileno(), source, offset + sent, block)
            except (BlockingIOError, InterruptedError):
                pass
            except OSError as error:
                raise _failure(error, sent, waited) from error
            else:
                if moved == 0:
                    break
                sent += moved
                if moved == block:
                    continue
            # The socket is full. Wait even if the peer empties it at once, so that other tasks get their turn.
            await until_sock_writable(loop, sock)
            waited = True
        return sent
    finally:
        os.lseek(source, offset + sent, os.SEEK_SET)


def _failure(error: OSError, sent: int, waited: bool) -> Exception:
    """Convert the call's error as asyncio does: before the first byte, it means to fall back to read and send."""
    if sent == 0:
        return exceptions.SendfileNotAvailableError("os.sendfile call failed")
    if waited and error.errno == errno.ENOTCONN and type(error) is not ConnectionError:
        return ConnectionError("socket is not connected", errno.ENOTCONN)
    return error


async def sendfile_native(loop: EventLoop, transport: Any, file: Any, offset: int, count: int | None) -> int:
    """The same for a transport, which neither reads nor writes until it is done."""
    resume_reading = transport.is_reading()
    transport.pause_reading()
    try:
        await transport._make_empty_waiter()
        return await loop.sock_sendfile(transport._sock, file, offset, count, fallback=False)
    finally:
        transport._reset_empty_waiter()
        if resume_reading:
            transport.resume_reading()
