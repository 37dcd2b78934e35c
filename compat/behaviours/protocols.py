"""BufferedProtocol, changing protocols, extra information, errors in callbacks."""

from __future__ import annotations

import asyncio
import contextvars
import os
import socket
from asyncio import trsock
from typing import Any

from compat.behaviours import check
from compat.behaviours.helpers import Recorder, collected_errors, pair, soon, until

BUFFERED = "BufferedProtocol"
CHANGE = "Transport.set_protocol, get_protocol"
EXTRA = "get_extra_info socket, peername, sockname"
FAILING = "errors in a protocol's callbacks close the connection and are reported"
CONTEXT = "contextvars: each connection's callbacks keep the server's context 3.15"


class Buffered(asyncio.BufferedProtocol):
    """Receives into buffers of its own, of odd sizes."""

    def __init__(self, sizes: tuple[int, ...] = (1, 7, 1000, 65536, 3)) -> None:
        loop = asyncio.get_running_loop()
        self.sizes = sizes
        self.turn = 0
        self.buffer = bytearray()
        self.data = bytearray()
        self.calls: list[str] = []
        self.hints: list[int] = []
        self.made: asyncio.Future[Any] = loop.create_future()
        self.lost: asyncio.Future[Any] = loop.create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.made.set_result(transport)

    def get_buffer(self, sizehint: int) -> bytearray:
        self.hints.append(sizehint)
        self.buffer = bytearray(self.sizes[self.turn % len(self.sizes)])
        self.turn += 1
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        assert 0 < nbytes <= len(self.buffer)
        self.data += self.buffer[:nbytes]

    def eof_received(self) -> None:
        self.calls.append("eof")

    def connection_lost(self, exc: Any) -> None:
        self.calls.append("lost")
        self.lost.set_result(exc)


class BufferedViews(Buffered):
    """Gives memoryviews: asyncio's TLS layer slices what it is given, and slicing a bytearray copies."""

    def get_buffer(self, sizehint: int) -> Any:
        return memoryview(super().get_buffer(sizehint))


@check(BUFFERED)
async def buffered_protocol_receives_into_its_own_buffers() -> None:
    message = os.urandom(300_000)
    async with pair(server=Buffered) as both:
        both.client.write(message)
        both.client.close()
        assert await soon(both.server_protocol.lost) is None
        assert bytes(both.server_protocol.data) == message
        assert both.server_protocol.calls == ["eof", "lost"]
        assert all(hint == -1 or hint > 0 for hint in both.server_protocol.hints)


@check(BUFFERED)
async def empty_buffer_is_an_error() -> None:
    with collected_errors() as contexts:
        async with pair(server=lambda: Buffered((0,))) as both:
            both.client.write(b"x")
            error = await soon(both.server_protocol.lost)
            assert isinstance(error, RuntimeError), error
    assert any("get_buffer" in context["message"] for context in contexts), contexts


@check(BUFFERED)
async def buffered_protocol_may_pause_in_its_callbacks() -> None:
    class Pausing(Buffered):
        def get_buffer(self, sizehint: int) -> bytearray:
            if self.turn % 3 == 1:
                self.transport.pause_reading()
                asyncio.get_running_loop().call_soon(self.transport.resume_reading)
            return super().get_buffer(sizehint)

        def buffer_updated(self, nbytes: int) -> None:
            super().buffer_updated(nbytes)
            self.transport.pause_reading()
            asyncio.get_running_loop().call_soon(self.transport.resume_reading)

    message = os.urandom(100_000)
    async with pair(server=lambda: Pausing((500, 4096))) as both:
        both.client.write(message)
        await until(lambda: len(both.server_protocol.data) == len(message))
        assert bytes(both.server_protocol.data) == message


@check(CHANGE)
async def protocol_can_be_changed_mid_stream() -> None:
    async with pair() as both:
        first = both.server_protocol
        assert both.server.get_protocol() is first
        both.client.write(b"one")
        await first.received(3)
        second = Buffered()
        both.server.set_protocol(second)
        assert both.server.get_protocol() is second
        both.client.write(b"two" * 1000)
        await until(lambda: bytes(second.data) == b"two" * 1000)
        third = Recorder()
        third.calls.append("made")
        both.server.set_protocol(third)
        both.client.write(b"three")
        assert await third.received(5) == b"three"
        assert bytes(first.data) == b"one"
        both.client.close()
        await soon(third.lost)
        assert not first.lost.done() and not second.lost.done()


@check(CHANGE)
async def protocol_changed_inside_data_received_gets_the_rest() -> None:
    class Upgrading(Recorder):
        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            successor.calls.append("made")
            self.transport.set_protocol(successor)

    successor = Recorder()
    message = os.urandom(3_000_000)
    async with pair(server=Upgrading) as both:
        both.client.write(message)
        await until(lambda: len(both.server_protocol.data) + len(successor.data) == len(message))
        assert bytes(both.server_protocol.data + successor.data) == message
        assert successor.data


@check(EXTRA)
async def extra_info_of_a_tcp_transport() -> None:
    async with pair() as both:
        sock = both.client.get_extra_info("socket")
        assert isinstance(sock, trsock.TransportSocket), type(sock)
        assert sock.family == socket.AF_INET and sock.type == socket.SOCK_STREAM
        assert both.client.get_extra_info("peername") == both.server.get_extra_info("sockname")
        assert both.client.get_extra_info("sockname") == both.server.get_extra_info("peername")
        assert sock.getsockname() == both.client.get_extra_info("sockname")
        assert sock.fileno() > 2
        assert both.client.get_extra_info("unknown") is None
        assert both.client.get_extra_info("unknown", "default") == "default"
        assert isinstance(both.client, asyncio.Transport)


@check(EXTRA)
async def tcp_transports_turn_nagle_off() -> None:
    async with pair() as both:
        for end in (both.client, both.server):
            sock = end.get_extra_info("socket")
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


@check(EXTRA)
async def extra_info_stays_after_close() -> None:
    async with pair() as both:
        peer = both.client.get_extra_info("peername")
        both.client.close()
        await soon(both.client_protocol.lost)
        assert both.client.get_extra_info("peername") == peer
        assert both.client.is_closing()


@check(FAILING)
async def error_in_data_received_is_fatal() -> None:
    class Failing(Recorder):
        def data_received(self, data: bytes) -> None:
            raise LookupError("data")

    with collected_errors() as contexts:
        async with pair(server=Failing) as both:
            both.client.write(b"x")
            assert isinstance(await soon(both.server_protocol.lost), LookupError)
            await soon(both.client_protocol.lost)
            (context,) = contexts
            assert isinstance(context["exception"], LookupError)
            assert context["transport"] is both.server and context["protocol"] is both.server_protocol
            assert "data_received() call failed" in context["message"], context["message"]


@check(FAILING)
async def error_in_eof_received_is_fatal() -> None:
    class Failing(Recorder):
        def eof_received(self) -> None:
            raise LookupError("eof")

    with collected_errors() as contexts:
        async with pair(server=Failing) as both:
            both.client.write_eof()
            assert isinstance(await soon(both.server_protocol.lost), LookupError)
    assert "eof_received() call failed" in contexts[0]["message"]


@check(FAILING)
async def error_in_connection_made_or_lost_is_reported() -> None:
    class Failing(Recorder):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            raise LookupError("made")

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            raise LookupError("lost")

    with collected_errors() as contexts:
        async with pair(server=Failing) as both:
            both.client.write(b"still works")
            assert await both.server_protocol.received(11) == b"still works"
            both.client.close()
            await soon(both.server_protocol.lost)
            await asyncio.sleep(0.02)
    assert sorted(str(context["exception"]) for context in contexts) == ["lost", "made"], contexts


@check(FAILING)
async def error_in_pause_writing_is_reported_and_survived() -> None:
    class Failing(Recorder):
        def pause_writing(self) -> None:
            raise LookupError("pause")

        def resume_writing(self) -> None:
            raise LookupError("resume")

    with collected_errors() as contexts:
        async with pair(client=Failing) as both:
            both.client.write(bytes(20_000_000))
            await both.server_protocol.received(20_000_000)
            await until(lambda: len(contexts) == 2)
    assert [context["message"] for context in contexts] == [
        "protocol.pause_writing() failed",
        "protocol.resume_writing() failed",
    ]


@check(CONTEXT, since=(3, 15))
async def connection_callbacks_run_in_the_servers_context() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    seen: list[str] = []

    class Looking(Recorder):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            seen.append(variable.get())

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            seen.append(variable.get())
            variable.set("changed by a connection")

    variable.set("server")
    async with pair(server=Looking) as both:
        variable.set("later")
        both.client.write(b"1")
        await both.server_protocol.received(1)
        both.client.write(b"2")
        await both.server_protocol.received(2)
    assert seen[:2] == ["server", "server"], seen
