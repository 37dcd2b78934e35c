"""asyncio's own StreamWriter on our transports: compiled writing is asyncio's writing."""

from __future__ import annotations

import asyncio
import inspect
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

pytestmark = pytest.mark.contract

Handler = Callable[[asyncio.StreamReader, Any, socket.socket], Awaitable[None]]


@pytest.fixture
def served(loop: Any, tmp_path: Path) -> Callable[[Handler], None]:
    """Runs a handler as a server's client_connected_cb, with the plain socket of its client."""

    async def main(handler: Handler) -> None:
        ended = loop.create_future()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await asyncio.wait_for(handler(reader, writer, client), 30)
            except BaseException as error:
                ended.set_exception(error)
            else:
                ended.set_result(None)
            finally:
                writer.transport.abort()

        with socket.socket(socket.AF_UNIX) as client:
            server = await asyncio.start_unix_server(connected, tmp_path / "socket")
            client.setblocking(False)
            await loop.sock_connect(client, str(tmp_path / "socket"))
            try:
                await ended
            finally:
                server.close()
                await server.wait_closed()
                await asyncio.sleep(0)

    return lambda handler: loop.run_until_complete(main(handler))


async def fill(writer: Any) -> None:
    """Until the protocol is told to pause."""
    while not writer._protocol._paused:
        writer.write(b"x" * 100_000)
        await asyncio.sleep(0)


async def empty(loop: Any, writer: Any, client: socket.socket) -> None:
    """Take what was sent until the protocol may go on."""
    while writer._protocol._paused:
        with suppress(BlockingIOError):
            client.recv(1 << 20)
        await asyncio.sleep(0)


def test_written_data_arrives(loop: Any, served: Any) -> None:
    async def handler(reader: asyncio.StreamReader, writer: Any, client: socket.socket) -> None:
        for data in (b"one", bytearray(b"two"), memoryview(b"three")):
            assert writer.write(data) is None
            assert await writer.drain() is None
            assert await loop.sock_recv(client, 100) == data
        with pytest.raises(TypeError):
            writer.write("text")
        writer.writelines([b"four", b"five"])
        await writer.drain()
        assert await loop.sock_recv(client, 100) == b"fourfive"

    served(handler)


def test_drain_waits_for_room(loop: Any, served: Any) -> None:
    async def handler(reader: asyncio.StreamReader, writer: Any, client: socket.socket) -> None:
        await fill(writer)
        waiting = [asyncio.create_task(writer.drain()) for _ in range(3)]
        await asyncio.sleep(0.01)
        assert not any(task.done() for task in waiting)
        waiting[1].cancel()
        await asyncio.wait(waiting[1:2])
        assert len(writer._protocol._drain_waiters) == 2
        await empty(loop, writer, client)
        await asyncio.wait_for(asyncio.gather(waiting[0], waiting[2]), 10)
        assert not writer._protocol._drain_waiters

    served(handler)


def test_drain_may_be_given_up_in_time(loop: Any, served: Any) -> None:
    async def handler(reader: asyncio.StreamReader, writer: Any, client: socket.socket) -> None:
        await fill(writer)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(writer.drain(), 0.01)
        assert not writer._protocol._drain_waiters
        await empty(loop, writer, client)
        await writer.drain()

    served(handler)


def test_a_waiting_drain_raises_when_the_connection_ends(loop: Any, served: Any) -> None:
    async def handler(reader: asyncio.StreamReader, writer: Any, client: socket.socket) -> None:
        await fill(writer)
        waiting = asyncio.create_task(writer.drain())
        await asyncio.sleep(0)
        client.close()
        with pytest.raises(ConnectionError):
            await waiting
            await writer.drain()  # asyncio tells the first only if the end was an error
        reader._exception = None  # type: ignore[attr-defined]
        with pytest.raises(ConnectionResetError, match="Connection lost"):
            await writer.drain()

    served(handler)


def test_a_loop_of_write_and_drain_gets_the_exception_after_the_close(loop: Any, served: Any) -> None:
    async def handler(reader: asyncio.StreamReader, writer: Any, client: socket.socket) -> None:
        writer.close()
        with pytest.raises(ConnectionResetError, match="Connection lost"):
            for _ in range(10):
                writer.write(b"on and on")
                await writer.drain()

    served(handler)


def test_drain_raises_what_the_reader_was_given(loop: Any, served: Any) -> None:
    async def handler(reader: asyncio.StreamReader, writer: Any, client: socket.socket) -> None:
        early = writer.drain()
        reader.set_exception(ZeroDivisionError("told"))
        for draining in (early, writer.drain()):
            with pytest.raises(ZeroDivisionError, match="told"):
                await draining
        assert isinstance(reader.exception(), ZeroDivisionError)

    served(handler)


def test_draining_is_a_coroutine(loop: Any, served: Any) -> None:
    async def handler(reader: asyncio.StreamReader, writer: Any, client: socket.socket) -> None:
        if sys.version_info >= (3, 12):
            assert inspect.iscoroutinefunction(writer.drain)
        elif hasattr(asyncio, "iscoroutinefunction"):
            assert asyncio.iscoroutinefunction(writer.drain)
        draining = writer.drain()
        assert asyncio.iscoroutine(draining)
        assert draining.__name__ == "drain" and draining.__qualname__ == "StreamWriter.drain"
        await draining
        with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
            await draining
        assert await asyncio.create_task(writer.drain()) is None
        writer.drain().close()
        with pytest.warns(RuntimeWarning, match=r"coroutine 'StreamWriter\.drain' was never awaited"):
            writer.drain()

    served(handler)


def test_the_writer_is_asyncios(loop: Any, served: Any) -> None:
    async def handler(reader: asyncio.StreamReader, writer: Any, client: socket.socket) -> None:
        assert isinstance(writer, asyncio.StreamWriter)
        assert repr(writer).startswith("<StreamWriter transport=")
        assert inspect.signature(writer.write) == inspect.signature(asyncio.StreamWriter(*made(writer)).write)
        writer.marked = True
        assert vars(writer)["marked"]

    def made(writer: Any) -> Any:
        return mock.Mock(), writer._protocol, None, loop

    served(handler)


def test_methods_a_program_replaced_are_called(loop: Any, served: Any) -> None:
    called = []

    class Loud(asyncio.StreamWriter):
        def write(self, data: Any) -> None:
            called.append(data)
            super().write(data)

    async def handler(reader: asyncio.StreamReader, writer: Any, client: socket.socket) -> None:
        writer.write(b"x")
        await writer.drain()
        assert called == [b"x", "drained"]

    async def drained(self: Any) -> None:
        called.append("drained")

    with mock.patch.object(asyncio.StreamWriter, "drain", drained):
        with mock.patch("asyncio.streams.StreamWriter", Loud):
            served(handler)


def test_a_helper_of_the_protocols_own_is_asked(loop: Any, served: Any) -> None:
    asked = []

    class Own(asyncio.StreamReaderProtocol):
        async def _drain_helper(self) -> None:
            asked.append(True)

    async def handler(reader: asyncio.StreamReader, writer: Any, client: socket.socket) -> None:
        writer._protocol = Own(reader, loop=loop)
        await writer.drain()
        assert asked == [True]

    served(handler)
