"""start_tls: connections that begin without TLS, in both directions, and TLS within TLS."""

from __future__ import annotations

import asyncio
import gc
import io
import os
import ssl
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests import streams
from tests.streams import BufferedRecorder, Recorder
from tests.tls.peers import Peer, client_context, connect, peer_of, server_context


async def upgrade(protocol: Any, peer: Peer, side: str, **options: Any) -> Any:
    """The protocol's connection goes on in TLS."""
    context = server_context() if side == "server" else client_context()
    if side == "client":
        options["server_hostname"] = "localhost"
    loop = asyncio.get_running_loop()
    upgrading = asyncio.ensure_future(
        loop.start_tls(protocol.transport, protocol, context, server_side=side == "server", **options)
    )
    await peer.handshake()
    protocol.transport = await upgrading
    return protocol.transport


class Viewing(BufferedRecorder):
    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(super().get_buffer(sizehint))


@pytest.mark.contract
@pytest.mark.parametrize("factory", [Recorder, Viewing])
def test_start_tls_upgrades_a_plain_connection(run: Any, side: str, factory: Any) -> None:
    async def main() -> None:
        protocol, sock = await streams.connect(factory)
        protocol.transport.write(b"plain")
        assert await streams.receive(sock, 5) == b"plain"
        peer = peer_of(sock, side)
        transport = await upgrade(protocol, peer, side)
        assert isinstance(transport.get_extra_info("ssl_object"), ssl.SSLObject)
        assert transport.get_protocol() is protocol
        message = os.urandom(100_000)
        sending = asyncio.ensure_future(peer.send(message))
        assert await protocol.until(len(message)) == message
        await sending
        transport.write(message)
        assert await peer.receive(len(message)) == message
        transport.close()
        await peer.goodbye()
        assert await protocol.lost is None
        assert protocol.calls.count("made") == 1
        sock.close()

    run(main())


class Served(asyncio.StreamReaderProtocol):
    """A stream of a server, and when its connection is lost."""

    def __init__(self) -> None:
        self.reader = asyncio.StreamReader()
        self.gone = asyncio.get_running_loop().create_future()
        super().__init__(self.reader, self.connected)

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        if not self.gone.done():
            self.gone.set_result(error)


@pytest.mark.parametrize("early", [False, True])
def test_stream_writer_start_tls_upgrades_the_connection(run: Any, early: bool) -> None:
    """Early: the reader has read the beginning of the handshake already."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        left, right = streams.pair()
        _, protocol = await loop.connect_accepted_socket(Served, left)
        peer = peer_of(right, "server")
        await loop.sock_sendall(right, b"starttls\n")
        with pytest.raises(ssl.SSLWantReadError):
            peer.tls.do_handshake()
        if early:
            hello = peer.outgoing.read()
            await loop.sock_sendall(right, hello)
            while len(protocol.reader._buffer) < 9 + len(hello):
                await asyncio.sleep(0)
        assert await protocol.reader.readline() == b"starttls\n"
        shaking = asyncio.ensure_future(peer.handshake())
        await protocol.writer.start_tls(server_context())
        await shaking
        await peer.send(b"hello")
        assert await protocol.reader.readexactly(5) == b"hello"
        protocol.writer.write(b"you")
        await protocol.writer.drain()
        assert await peer.receive(3) == b"you"
        protocol.writer.close()
        assert await peer.receive(1) == b""
        await peer.goodbye()
        assert await protocol.gone is None
        right.close()

    run(main())


@pytest.mark.contract
def test_start_tls_runs_tls_within_tls(run: Any, side: str) -> None:
    async def main() -> None:
        protocol, outer = await connect(side=side)
        inner = Within(outer, side)
        transport = await upgrade(protocol, inner, side)
        message = os.urandom(100_000)
        sending = asyncio.ensure_future(inner.send(message))
        assert await protocol.until(len(message)) == message
        await sending
        transport.write(message)
        assert await inner.receive(len(message)) == message
        assert transport.get_extra_info("peername") == outer.sock.getsockname()
        transport.close()
        await inner.goodbye()
        assert await outer.receive(1) == b""
        await outer.goodbye()
        assert await protocol.lost is None
        outer.sock.close()

    run(main())


class Within(Peer):
    """A session in another."""

    def __init__(self, outer: Peer, side: str) -> None:
        context = server_context() if side == "client" else client_context()
        super().__init__(outer.sock, context, side == "client")
        self.outer = outer

    async def arrival(self) -> bytes:
        data: bytes = await self.outer.do(self.outer.tls.read, 1 << 16)
        if not data:
            raise EOFError
        return data

    async def push(self) -> None:
        if self.outgoing.pending:
            await self.outer.send(self.outgoing.read())


@pytest.mark.contract
def test_start_tls_refuses_wrong_arguments(run: Any) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        protocol, sock = await streams.connect()
        with pytest.raises(TypeError, match=r"sslcontext is expected to be an instance of ssl\.SSLContext"):
            await loop.start_tls(protocol.transport, protocol, None)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="is not supported by start_tls"):
            await loop.start_tls(object(), protocol, client_context())  # type: ignore[arg-type]
        await loop.sock_sendall(sock, b"unharmed")
        assert await protocol.until(8) == b"unharmed"
        protocol.transport.abort()
        await protocol.lost
        sock.close()

    run(main())


@contextmanager
def no_collections() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def test_a_failed_upgrade_raises_and_leaves_no_cycle(run: Any) -> None:
    async def fail(sock: Any) -> Any:
        loop = asyncio.get_running_loop()
        left, right = streams.pair()
        transport, protocol = await loop.create_connection(asyncio.Protocol, sock=left)
        await loop.sock_sendall(right, b"this is no TLS at all\r\n" * 9)
        try:
            await loop.start_tls(transport, protocol, client_context(), server_hostname="localhost")
        except ssl.SSLError:
            sock.append(right)
        return weakref.ref(transport)

    async def main() -> None:
        sock: list[Any] = []
        gone = await fail(sock)
        with sock[0]:
            while gone() is not None and not gone().is_closing():
                await asyncio.sleep(0)
            while await is_open(sock[0]):
                pass
            for _ in range(5):
                await asyncio.sleep(0)
        assert gone() is None

    with no_collections():
        run(main())


@pytest.mark.contract
def test_a_connection_closed_before_its_upgrade_has_no_transport(run: Any, side: str) -> None:
    async def main() -> None:
        protocol, sock = await streams.connect(Recorder)
        transport = protocol.transport
        transport.close()
        context = server_context() if side == "server" else client_context()
        options: dict[str, Any] = {} if side == "server" else {"server_hostname": "localhost"}
        loop = asyncio.get_running_loop()
        upgraded = await loop.start_tls(transport, protocol, context, server_side=side == "server", **options)
        assert upgraded is None
        sock.close()

    run(main())


async def is_open(sock: Any) -> bool:
    """Read a piece of what comes."""
    try:
        return bool(await asyncio.get_running_loop().sock_recv(sock, 4096))
    except ConnectionError:
        return False


@pytest.mark.contract
def test_an_upgrade_that_takes_too_long_is_aborted(run: Any) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        protocol, sock = await streams.connect()
        with pytest.raises(ConnectionAbortedError):
            await loop.start_tls(
                protocol.transport,
                protocol,
                client_context(),
                server_hostname="x",
                ssl_handshake_timeout=0.01,
            )
        assert protocol.transport.is_closing()
        while await loop.sock_recv(sock, 4096):
            pass
        sock.close()

    run(main())


@pytest.mark.contract
def test_a_cancelled_upgrade_closes_the_connection(run: Any) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        protocol, sock = await streams.connect()
        upgrading = asyncio.ensure_future(
            loop.start_tls(protocol.transport, protocol, client_context(), server_hostname="localhost")
        )
        await loop.sock_recv(sock, 1)
        upgrading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await upgrading
        while await loop.sock_recv(sock, 4096):
            pass
        sock.close()

    run(main())


@pytest.mark.contract
def test_sendfile_reads_and_sends_the_file_itself(run: Any) -> None:
    """The kernel cannot encrypt them."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        protocol, peer = await connect()
        data = os.urandom(700_000)
        with pytest.raises(RuntimeError, match="fallback is disabled"):
            await loop.sendfile(protocol.transport, io.BytesIO(data), fallback=False)
        receiving = asyncio.ensure_future(peer.receive(len(data) - 10))
        assert await loop.sendfile(protocol.transport, io.BytesIO(data), 10) == len(data) - 10
        assert await receiving == data[10:]
        await peer.send(b"still reading")
        await protocol.until(13)
        protocol.transport.abort()
        await protocol.lost
        peer.sock.close()

    run(main())


@pytest.mark.contract
def test_the_transport_has_the_attributes_of_asyncios(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        transport = protocol.transport
        assert isinstance(transport, asyncio.Transport)
        assert transport.get_read_buffer_limits() == (64 * 1024, 256 * 1024)
        transport.set_read_buffer_limits(high=1000)
        assert transport.get_read_buffer_limits() == (250, 1000)
        with pytest.raises(ValueError):
            transport.set_read_buffer_limits(high=1, low=2)
        assert transport.get_read_buffer_size() == 0
        assert transport._ssl_protocol._app_transport is transport
        assert transport._ssl_protocol._transport is not None
        assert transport._ssl_protocol._app_protocol is protocol
        assert transport._ssl_protocol._sslobj is transport.get_extra_info("ssl_object")
        assert not transport._ssl_protocol._app_reading_paused
        transport.pause_reading()
        assert transport._ssl_protocol._app_reading_paused
        assert transport._loop is asyncio.get_running_loop()
        transport.abort()
        await protocol.lost
        assert transport.is_closing()
        peer.sock.close()

    run(main())


def test_repr_shows_the_state_of_the_connection(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        transport = protocol.transport
        assert repr(transport).startswith("<TlsTransport open on <StreamTransport open")
        assert repr(transport._ssl_protocol).startswith("<TlsConnection open queued=0 on")
        transport.write(b"some")
        assert "queued=4" in repr(transport._ssl_protocol)
        transport.close()
        assert repr(transport).startswith("<TlsTransport closing")
        assert "shutdown" in repr(transport._ssl_protocol)
        transport.abort()
        await protocol.lost
        assert "over" in repr(transport._ssl_protocol)
        peer.sock.close()

    run(main())
