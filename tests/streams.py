"""Stream connections for tests: a transport under test whose peer is a plain socket, and protocols that remember
what they were told."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Callable
from typing import Any

CLOSED = ("made", "lost")  # what every connection is told, once each, first and last


class Recorder(asyncio.Protocol):
    """Remembers every call. `keep_open` is what eof_received answers."""

    def __init__(self, keep_open: bool = False) -> None:
        self.keep_open = keep_open
        self.calls: list[str] = []
        self.received = bytearray()
        self.flow: list[str] = []
        self.made = asyncio.Event()
        self.ended = asyncio.Event()
        self.news = asyncio.Event()
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.calls.append("made")
        self.transport = transport
        self.made.set()

    def data_received(self, data: bytes) -> None:
        self.calls.append("data")
        self.received += data
        self.news.set()

    def eof_received(self) -> bool:
        self.calls.append("eof")
        self.ended.set()
        return self.keep_open

    def pause_writing(self) -> None:
        self.flow.append("pause")
        self.news.set()

    def resume_writing(self) -> None:
        self.flow.append("resume")
        self.news.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.calls.append("lost")
        self.lost.set_result(error)

    async def until(self, size: int) -> bytearray:
        return await self.when(lambda: len(self.received) >= size)

    async def when(self, condition: Callable[[], bool]) -> bytearray:
        while not condition():
            self.news.clear()
            await self.news.wait()
        return self.received


class BufferedRecorder(Recorder, asyncio.BufferedProtocol):
    """The same, receiving into buffers of the sizes in `sizes`, used in turn."""

    sizes: tuple[int, ...] = (65536,)

    def __init__(self, keep_open: bool = False) -> None:
        super().__init__(keep_open)
        self.offered = 0

    def get_buffer(self, sizehint: int) -> bytearray | memoryview:
        self.buffer = bytearray(self.sizes[self.offered % len(self.sizes)])
        self.offered += 1
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self.buffer[:nbytes]))


def pair(family: str = "tcp") -> tuple[socket.socket, socket.socket]:
    """Two connected sockets that do not block."""
    if family == "unix":
        left, right = socket.socketpair()
    else:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            left = socket.create_connection(listener.getsockname())
            right = listener.accept()[0]
    left.setblocking(False)
    right.setblocking(False)
    return left, right


async def connect(factory: Any = Recorder, family: str = "tcp") -> tuple[Any, socket.socket]:
    """A protocol on a transport of the running loop, and the socket at the other end."""
    loop = asyncio.get_running_loop()
    left, right = pair(family)
    if family == "unix":
        _, protocol = await loop.create_unix_connection(factory, sock=left)
    else:
        _, protocol = await loop.create_connection(factory, sock=left)
    return protocol, right


async def receive(peer: socket.socket, size: int) -> bytes:
    """So many bytes, or all there are until the end of the stream."""
    loop = asyncio.get_running_loop()
    got = bytearray()
    while len(got) < size:
        data = await loop.sock_recv(peer, min(size - len(got), 1 << 18))
        if not data:
            break
        got += data
    return bytes(got)


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def settled(transport: Any) -> None:
    """What was written or asked for so far has reached the kernel, and what it answered was seen."""
    loop = asyncio.get_running_loop()
    left, right = socket.socketpair()
    with left, right:
        left.setblocking(False)
        right.setblocking(False)
        for _ in range(3):  # a round trip each: the loop sleeps in between
            await loop.sock_sendall(left, b"x")
            await loop.sock_recv(right, 1)


def reset(peer: socket.socket) -> None:
    """Close so that the other end is told ECONNRESET."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True
