"""The hot paths of sockets and files, to be counted like those of paths.py. Both ends of a connection are in the
loop."""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.counts.paths import Loop, Steps, path, run_turns

CERTIFICATES = Path(__file__).resolve().parents[2] / "compat/behaviours/certs"
KILOBYTE = b"x" * 1024
HERE = ("127.0.0.1", 0)


class Echo(asyncio.Protocol):
    transport: Any

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


class Caller(Echo):
    """The other end: says it again until it was echoed so often."""

    def __init__(self, loop: Loop) -> None:
        self.loop, self.left = loop, 0

    def run(self, count: int) -> None:
        self.left = count
        self.transport.write(KILOBYTE)
        self.loop.run_forever()

    def data_received(self, data: bytes) -> None:
        self.left -= 1
        if self.left:
            self.transport.write(data)
        else:
            self.loop.stop()


def make_echo(loop: Loop, server_options: dict[str, Any], client_options: dict[str, Any]) -> Steps:
    server = loop.run_until_complete(loop.create_server(Echo, *HERE, **server_options))
    address = server.sockets[0].getsockname()
    connecting = loop.create_connection(lambda: Caller(loop), *address, **client_options)
    transport, caller = loop.run_until_complete(connecting)
    yield caller.run
    transport.close()
    close_server(loop, server)


def close_server(loop: Loop, server: Any) -> None:
    server.close()
    loop.run_until_complete(server.wait_closed())
    run_turns(loop, 16)


@path("echo by protocol", 128)
def echo_by_protocol(loop: Loop) -> Steps:
    """1 KB there and back."""
    yield from make_echo(loop, {}, {})


@path("TLS record", 64)
def tls_record(loop: Loop) -> Steps:
    """1 KB there and back: two records encrypted, and two decrypted."""
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(CERTIFICATES / "localhost.pem", CERTIFICATES / "localhost.key")
    client_context = ssl.create_default_context(cafile=str(CERTIFICATES / "ca.pem"))
    client_context.check_hostname = False
    client_context.verify_mode = ssl.CERT_NONE  # certificates expire
    yield from make_echo(loop, {"ssl": server_context}, {"ssl": client_context})


@path("echo by streams", 128)
def echo_by_streams(loop: Loop) -> Steps:
    """1 KB there and back."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(4096):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def call(count: int) -> None:
        for _ in range(count):
            writer.write(KILOBYTE)
            await reader.readexactly(len(KILOBYTE))

    server = loop.run_until_complete(asyncio.start_server(serve, *HERE))
    address = server.sockets[0].getsockname()
    reader, writer = loop.run_until_complete(asyncio.open_connection(*address))
    yield lambda count: loop.run_until_complete(call(count))
    writer.close()
    close_server(loop, server)


@path("connect-accept-close", 32)
def connect_accept_close(loop: Loop) -> Steps:
    """A connection is made and accepted, the client closes it, and the server learns of that."""
    lost: asyncio.Future[None]

    class Accepted(asyncio.Protocol):
        def connection_lost(self, error: Exception | None) -> None:
            lost.set_result(None)

    server = loop.run_until_complete(loop.create_server(Accepted, *HERE))
    address = server.sockets[0].getsockname()

    async def connect_and_close(count: int) -> None:
        nonlocal lost
        for _ in range(count):
            lost = loop.create_future()
            transport, _ = await loop.create_connection(asyncio.Protocol, *address)
            transport.close()
            await lost

    yield lambda count: loop.run_until_complete(connect_and_close(count))
    close_server(loop, server)


@contextmanager
def pair_of_sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair()
    with left, right:
        left.setblocking(False)
        right.setblocking(False)
        yield left, right


@path("add_reader", 256)
def add_reader(loop: Loop) -> Steps:
    """A reader that stays is told that there is something to read, and reads it."""
    left_over = 0

    def readable() -> None:
        nonlocal left_over
        right.recv(1)
        left_over -= 1
        if left_over:
            left.send(b"x")
        else:
            loop.stop()

    def run(count: int) -> None:
        nonlocal left_over
        left_over = count
        left.send(b"x")
        loop.run_forever()

    with pair_of_sockets() as (left, right):
        loop.add_reader(right, readable)
        yield run
        loop.remove_reader(right)
        run_turns(loop, 4)


@path("add_reader and remove_reader", 256)
def add_and_remove_reader(loop: Loop) -> Steps:
    """Of sockets where nothing arrives."""
    sockets = [end for _ in range(16) for end in socket.socketpair()]

    def run(count: int) -> None:
        for _ in range(count // len(sockets)):
            for sock in sockets:
                loop.add_reader(sock, print)
            run_turns(loop)
            for sock in sockets:
                loop.remove_reader(sock)
            run_turns(loop)

    yield run
    run_turns(loop, 4)
    for sock in sockets:
        sock.close()


class Answerer(asyncio.DatagramProtocol):
    transport: Any

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, address: Any) -> None:
        self.transport.sendto(data, address)


class Asker(Answerer):
    def __init__(self, loop: Loop) -> None:
        self.loop, self.left = loop, 0

    def run(self, count: int) -> None:
        self.left = count
        self.transport.sendto(b"x" * 64)
        self.loop.run_forever()

    def datagram_received(self, data: bytes, address: Any) -> None:
        self.left -= 1
        if self.left:
            self.transport.sendto(data)
        else:
            self.loop.stop()


@path("datagram", 128)
def datagram(loop: Loop) -> Steps:
    """One, and its answer."""
    make = loop.create_datagram_endpoint
    answers, _ = loop.run_until_complete(make(Answerer, local_addr=HERE))
    address = answers.get_extra_info("sockname")
    asks, asker = loop.run_until_complete(make(lambda: Asker(loop), remote_addr=address))
    yield asker.run
    asks.close()
    answers.close()
    run_turns(loop, 4)


@path("sock_sendall and sock_recv", 128)
def sock_calls(loop: Loop) -> Steps:
    """1 KB there and back."""

    async def echo() -> None:
        while data := await loop.sock_recv(right, 4096):
            await loop.sock_sendall(right, data)

    async def call(count: int) -> None:
        for _ in range(count):
            await loop.sock_sendall(left, KILOBYTE)
            await loop.sock_recv(left, 4096)

    with pair_of_sockets() as (left, right):
        echoing = loop.create_task(echo())
        yield lambda count: loop.run_until_complete(call(count))
        left.close()
        loop.run_until_complete(echoing)


@path("sock_connect and sock_accept", 32)
def sock_connections(loop: Loop) -> Steps:
    async def connect_and_accept(count: int) -> None:
        for _ in range(count):
            with socket.socket() as client:
                client.setblocking(False)
                accepting = loop.create_task(loop.sock_accept(listener))
                await loop.sock_connect(client, address)
                accepted, _ = await accepting
                accepted.close()

    with socket.create_server(HERE) as listener:
        listener.setblocking(False)
        address = listener.getsockname()
        yield lambda count: loop.run_until_complete(connect_and_accept(count))


@path("file read", 256)
def file_read(loop: Loop) -> Steps:
    """4 KB that the page cache has, from an open file. It was opened before: on epoll a thread would do that."""
    from uringloop import open_file

    async def open_it() -> Any:
        return await open_file(kept.fileno(), "rb", buffering=0, closefd=False)

    async def read(count: int) -> None:
        for _ in range(count):
            await file.seek(0)
            await file.read(4096)

    with tempfile.TemporaryFile() as kept:
        kept.write(KILOBYTE * 16)
        kept.flush()
        file = loop.run_until_complete(open_it())
        yield lambda count: loop.run_until_complete(read(count))
        loop.run_until_complete(file.close())
