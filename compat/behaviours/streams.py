"""Streams, and the ways a connection ends."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from typing import Any

from compat.behaviours import check
from compat.behaviours.callbacks import open_echo
from compat.behaviours.helpers import Accepting, HalfOpen, pair, raises_async, serving, soon

STREAMS = "StreamReader/Writer echo, write_eof then read the reply"
HALF = "half-close: eof_received() -> True keeps the write side"
FLUSH = "close() flushes 5 MB; the peer gets FIN and connection_lost(None)"
ABORT = "abort(); connection_lost(ConnectionResetError) on RST"


@check(STREAMS)
async def stream_echo() -> None:
    message = os.urandom(1_000_000)
    reader, writer = await open_echo()
    sending = asyncio.create_task(_send(writer, message))
    assert await soon(reader.readexactly(len(message))) == message
    await sending
    writer.write(b"line one\nline two\n")
    assert await soon(reader.readline()) == b"line one\n"
    assert await soon(reader.readuntil(b"two\n")) == b"line two\n"
    writer.close()
    await soon(writer.wait_closed())
    assert reader.at_eof() or await reader.read() == b""


async def _send(writer: asyncio.StreamWriter, message: bytes) -> None:
    writer.write(message)
    await writer.drain()


@check(STREAMS)
async def write_eof_then_read_the_reply() -> None:
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.read()
        writer.write(request[::-1])
        writer.close()

    server = await asyncio.start_server(reply, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    assert writer.can_write_eof()
    writer.write(b"abc" * 100_000)
    writer.write_eof()
    assert await soon(reader.read()) == b"cba" * 100_000
    writer.close()
    await soon(writer.wait_closed())
    server.close()


@check(STREAMS)
async def failing_stream_handler_closes_the_connection() -> None:
    async def fail(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        raise LookupError("handler")

    loop = asyncio.get_running_loop()
    contexts: list[Any] = []
    loop.set_exception_handler(lambda _, context: contexts.append(context))
    server = await asyncio.start_server(fail, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"x")
    assert await soon(reader.read()) == b""
    loop.set_exception_handler(None)
    assert isinstance(contexts[0]["exception"], LookupError)
    writer.close()
    server.close()


@check(HALF)
async def half_closed_connection_still_carries_the_answer() -> None:
    async with pair(client=HalfOpen, server=HalfOpen) as both:
        both.client.write(b"question")
        both.client.write_eof()
        await soon(both.server_protocol.eof)
        assert not both.server.is_closing()
        await asyncio.sleep(0.05)
        both.server.write(b"answer" * 50_000)
        assert await both.client_protocol.received(300_000) == b"answer" * 50_000
        both.server.close()
        await soon(both.client_protocol.eof)
        both.client.close()
        assert await soon(both.client_protocol.lost) is None
        assert await soon(both.server_protocol.lost) is None
    assert both.server_protocol.calls == ["made", "data", "eof", "lost"]


@check(HALF)
async def eof_received_without_true_closes() -> None:
    async with pair() as both:
        both.client.write_eof()
        assert await soon(both.server_protocol.lost) is None
        assert both.server.is_closing()
        assert await soon(both.client_protocol.lost) is None
    assert both.server_protocol.calls == ["made", "eof", "lost"]
    assert both.client_protocol.calls == ["made", "eof", "lost"]


@check(HALF)
async def write_after_write_eof_is_refused() -> None:
    async with pair(server=HalfOpen) as both:
        assert both.client.can_write_eof() is True
        both.client.write_eof()
        both.client.write_eof()
        error = None
        try:
            both.client.write(b"too late")
        except RuntimeError as raised:
            error = raised
        assert error is not None


@check(FLUSH)
async def close_flushes_what_is_queued() -> None:
    message = os.urandom(5_000_000)
    async with pair() as both:
        both.client.write(message)
        both.client.close()
        assert both.client.is_closing()
        assert await both.server_protocol.received(len(message)) == message
        assert await soon(both.server_protocol.lost) is None
        assert await soon(both.client_protocol.lost) is None
    assert both.server_protocol.calls == ["made", "data", "eof", "lost"]
    assert "data" not in both.client_protocol.calls


@check(FLUSH)
async def write_eof_flushes_first() -> None:
    message = os.urandom(3_000_000)
    async with pair(server=HalfOpen) as both:
        both.client.write(message)
        both.client.write_eof()
        await soon(both.server_protocol.eof)
        assert bytes(both.server_protocol.data) == message


@check(ABORT)
async def abort_drops_what_is_queued() -> None:
    async with pair() as both:
        both.server.pause_reading()
        both.client.write(bytes(50_000_000))
        both.client.abort()
        both.client.abort()
        assert both.client.is_closing()
        assert await soon(both.client_protocol.lost) is None
        both.server.resume_reading()
        await soon(both.server_protocol.lost)
        assert len(both.server_protocol.data) < 50_000_000


@check(ABORT)
async def reset_by_the_peer_is_told_to_the_protocol() -> None:
    async with serving(accept := Accepting()) as (_, port):
        sock = socket.create_connection(("127.0.0.1", port))
        protocol = await accept.connected()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
        error = await soon(protocol.lost)
        assert isinstance(error, ConnectionResetError), error
        assert protocol.calls == ["made", "lost"], protocol.calls


@check(ABORT)
async def reset_reaches_the_stream_reader() -> None:
    async with serving(accept := Accepting()) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        protocol = await accept.connected()
        sock = protocol.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        protocol.transport.abort()
        await raises_async(ConnectionResetError, soon(reader.read()))
        writer.close()


@check(ABORT)
async def write_to_a_gone_peer_ends_in_connection_lost() -> None:
    async with serving(accept := Accepting()) as (_, port):
        sock = socket.create_connection(("127.0.0.1", port))
        protocol = await accept.connected()
        protocol.transport.pause_reading()
        sock.close()

        async def keep_writing() -> None:
            while not protocol.lost.done():
                protocol.transport.write(b"x" * 1000)
                await asyncio.sleep(0.005)

        await soon(keep_writing())
        assert isinstance(await soon(protocol.lost), (ConnectionResetError, BrokenPipeError))
