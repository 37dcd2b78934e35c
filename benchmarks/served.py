"""The server side of the I/O rows, one small class or coroutine per way of writing a server.

Only asyncio's own API.
"""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

CHUNK = 64 * 1024


def work_for(nanoseconds: int) -> None:
    """The stand-in for an application's own work on one message, in Python."""
    until = time.perf_counter_ns() + nanoseconds
    while time.perf_counter_ns() < until:
        pass


class Echo(asyncio.Protocol):
    """data_received and write."""

    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


class WorkingEcho(Echo):
    """20 microseconds of Python per message."""

    def data_received(self, data: bytes) -> None:
        work_for(20_000)
        self.transport.write(data)


class BufferedEcho(asyncio.BufferedProtocol):
    """The same with one receive buffer per connection; its content is copied, because write() may keep
    a reference.
    """

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._view = memoryview(bytearray(CHUNK))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._view

    def buffer_updated(self, nbytes: int) -> None:
        self.transport.write(bytes(self._view[:nbytes]))


class Sink(asyncio.Protocol):
    """Takes everything, answers nothing."""

    def data_received(self, data: bytes) -> None:
        pass


class Source(asyncio.Protocol):
    """Writes for ever, after the first byte has come, under the transport's own flow control."""

    chunk = bytes(65536)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._paused = False
        self._loop = asyncio.get_running_loop()

    def data_received(self, data: bytes) -> None:
        self._pour()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._loop.call_soon(self._pour)

    def _pour(self) -> None:
        for _ in range(16):
            if self._paused or self._transport.is_closing():
                return
            self._transport.write(self.chunk)
        self._loop.call_soon(self._pour)


class Broadcast(asyncio.Protocol):
    """One byte from anybody: the message goes to every connection."""

    everybody: set[asyncio.Transport] = set()  # noqa: RUF012  (one server per process)
    message = b""
    expected = 0  # how many connections there will be: the first byte may come before the last is accepted

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.everybody.add(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.everybody.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        if len(self.everybody) < self.expected:
            asyncio.get_running_loop().call_later(0.01, self.data_received, data)
            return
        message = self.message
        for transport in self.everybody:
            transport.write(message)


class DatagramEcho(asyncio.DatagramProtocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.DatagramTransport = transport  # type: ignore[assignment]

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._transport.sendto(data, addr)


class DatagramBurst(DatagramEcho):
    """Many datagrams for one, as a QUIC or a DNS server's answers are."""

    answers = 1

    def datagram_received(self, data: bytes, addr: Any) -> None:
        for _ in range(self.answers):
            self._transport.sendto(data, addr)


async def echo_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """read, write, drain."""
    try:
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def echo_socket(loop: asyncio.AbstractEventLoop, connection: socket.socket) -> None:
    """sock_recv and sock_sendall."""
    with connection:
        try:
            while data := await loop.sock_recv(connection, CHUNK):
                await loop.sock_sendall(connection, data)
        except ConnectionError:
            pass


async def accept_sockets(loop: asyncio.AbstractEventLoop, listener: socket.socket) -> None:
    tasks = set()
    while True:
        connection, _address = await loop.sock_accept(listener)
        connection.setblocking(False)
        if connection.family == socket.AF_INET:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = loop.create_task(echo_socket(loop, connection))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


def echo_readable(loop: asyncio.AbstractEventLoop, connection: socket.socket) -> None:
    try:
        data = connection.recv(CHUNK)
    except ConnectionResetError:
        data = b""
    if data:
        connection.send(data)  # far below the socket's buffer
    else:
        loop.remove_reader(connection)
        connection.close()


def accept_readable(loop: asyncio.AbstractEventLoop, listener: socket.socket) -> None:
    connection, _address = listener.accept()
    connection.setblocking(False)
    if connection.family == socket.AF_INET:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    loop.add_reader(connection, echo_readable, loop, connection)


PROTOCOLS: dict[str, type[asyncio.BaseProtocol]] = {
    "protocol": Echo,
    "work": WorkingEcho,
    "buffered": BufferedEcho,
    "sink": Sink,
    "source": Source,
    "broadcast": Broadcast,
}
