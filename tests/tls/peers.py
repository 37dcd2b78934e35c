"""TLS connections for tests: a transport under test whose peer is a session of our own on a plain socket, which can do
what no well-behaved peer does."""

from __future__ import annotations

import _ssl
import asyncio
import ctypes
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from tests.streams import Recorder, pair
from uringloop._core.cpython.canaries import state
from uringloop._core.tls import direct_records  # noqa: F401  (its canary says whether it is used)

CERTIFICATES = Path(__file__).resolve().parents[2] / "compat" / "behaviours" / "certs"
APPLICATION_DATA = 23  # a record's type, its first byte


def server_context(**options: Any) -> ssl.SSLContext:
    """Options are attributes to set, as in `verify_mode=ssl.CERT_REQUIRED`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "localhost.pem", CERTIFICATES / "localhost.key")
    context.load_verify_locations(CERTIFICATES / "ca.pem")
    for name, value in options.items():
        setattr(context, name, value)
    return context


def client_context(with_certificate: bool = False, **options: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(CERTIFICATES / "ca.pem"))
    if with_certificate:
        context.load_cert_chain(CERTIFICATES / "localhost.pem", CERTIFICATES / "localhost.key")
    for name, value in options.items():
        setattr(context, name, value)
    return context


class Peer:
    """The other end, by hand."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, server_side: bool) -> None:
        self.sock = sock
        self.loop = asyncio.get_running_loop()
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        name = None if server_side else "localhost"
        self.tls = context.wrap_bio(
            self.incoming, self.outgoing, server_side=server_side, server_hostname=name
        )

    async def do(self, call: Any, *args: Any) -> Any:
        """Call until it need not hear from the other end first; EOFError where that is gone."""
        while True:
            try:
                result = call(*args)
            except ssl.SSLWantReadError:
                await self.push()
                self.incoming.write(await self.arrival())
            else:
                await self.push()
                return result

    async def arrival(self) -> bytes:
        data = await self.loop.sock_recv(self.sock, 1 << 18)
        if not data:
            raise EOFError
        return data

    async def push(self) -> None:
        if self.outgoing.pending:
            await self.loop.sock_sendall(self.sock, self.outgoing.read())

    async def handshake(self) -> None:
        await self.do(self.tls.do_handshake)

    async def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self.tls.write(view) :]
        await self.push()

    async def receive(self, size: int) -> bytes:
        """So many bytes, or all there are until the other end has said goodbye."""
        got = bytearray()
        while len(got) < size:
            try:
                # It makes room for all that it is asked for.
                data = await self.do(self.tls.read, min(size - len(got), 1 << 20))
            except ssl.SSLZeroReturnError:  # we have said goodbye too
                break
            if not data:
                break
            got += data
        return bytes(got)

    async def say_goodbye(self) -> None:
        """Send close_notify, and wait for none."""
        try:
            self.tls.unwrap()
        except ssl.SSLWantReadError:
            pass
        await self.push()

    async def goodbye(self) -> None:
        """Both close_notifies."""
        await self.do(self.tls.unwrap)

    def end(self) -> None:
        """EOF, with nothing said."""
        self.sock.shutdown(socket.SHUT_WR)


def peer_of(sock: socket.socket, side: str, **options: Any) -> Peer:
    """The peer of the side that is under test."""
    if side == "client":
        return Peer(sock, server_context(**options), True)
    return Peer(sock, client_context(**options), False)


def begin(
    factory: Any, sock: socket.socket, side: str, context: ssl.SSLContext | None = None, **options: Any
) -> Any:
    """The coroutine that makes a TLS connection of one end of a pair."""
    loop = asyncio.get_running_loop()
    if side == "server":
        return loop.connect_accepted_socket(factory, sock, ssl=context or server_context(), **options)
    options = {"ssl": context or client_context(), "server_hostname": "localhost", **options}
    if sock.family == socket.AF_UNIX:
        return loop.create_unix_connection(factory, sock=sock, **options)
    return loop.create_connection(factory, sock=sock, **options)


async def connect(
    factory: Any = Recorder, side: str = "client", family: str = "tcp", version: str = "", **options: Any
) -> tuple[Any, Peer]:
    """A protocol on a TLS transport of the running loop, and its peer."""
    left, right = pair(family)
    peer = peer_of(right, side, **({"maximum_version": ssl.TLSVersion[version]} if version else {}))
    made = asyncio.ensure_future(begin(factory, left, side, **options))
    await peer.handshake()
    _, protocol = await made
    return protocol, peer


def records(ciphertext: bytes) -> list[int]:
    """The types of the whole records in it."""
    found = []
    while len(ciphertext) >= 5:
        found.append(ciphertext[0])
        ciphertext = ciphertext[5 + int.from_bytes(ciphertext[3:5], "big") :]
    return found


def lacks_some(ciphertext: bytes | bytearray) -> bool:
    """Whether the last record in it is not whole."""
    while ciphertext:
        size = 5 + int.from_bytes(ciphertext[3:5], "big")
        if len(ciphertext) < size:
            return True
        ciphertext = ciphertext[size:]
    return False


async def leave(protocol: Any, peer: Any) -> None:
    """Done with both ends."""
    protocol.transport.abort()
    peer.sock.close()
    await protocol.lost


async def fill(protocol: Any, peer: Peer) -> int:
    """Write more than the sockets hold, until the writer is paused: how much. Unix sockets hold little, and always
    the same."""
    assert peer.sock.family == socket.AF_UNIX
    written = 0
    while "pause" not in protocol.flow:
        protocol.transport.write(bytes(2_000_000))
        written += 2_000_000
        await asyncio.sleep(0)
    return written


def is_direct(transport: Any) -> bool:
    return type(transport._ssl_protocol.records).__name__ == "DirectRecords"


def direct_or_skip() -> None:
    if not state()["openssl"]:
        pytest.skip("the plain path")


def plain_context(side: str, **options: Any) -> ssl.SSLContext:
    """Of a context with a callback for messages, CPython's methods move the data."""
    context = server_context(**options) if side == "server" else client_context(**options)
    context._msg_callback = lambda *_: None  # type: ignore[attr-defined]
    return context


def openssl() -> Any:
    """The OpenSSL that CPython uses."""
    library = getattr(_ssl, "__file__", None)
    if library is None:
        pytest.skip("OpenSSL is a part of the interpreter")
    return ctypes.PyDLL(library)


def session_of(tls: Any) -> ctypes.c_void_p:
    """OpenSSL's SSL of one of CPython's objects."""
    at = id(tls._sslobj) + object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p)
    return ctypes.c_void_p.from_address(at)
