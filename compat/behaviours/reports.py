"""Defects that users reported against other loops, which no loop should have. Not covered elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from typing import Any

from compat.behaviours import check
from compat.behaviours.helpers import (
    Echo,
    Recorder,
    client_tls,
    pair,
    raises_async,
    server_tls,
    serving,
    soon,
    until,
)

STEAL = "reported: a descriptor is closed once, by its owner"
CANCELLED = "reported: cancelled and failed operations leave no registration"
TRANSPORT = "reported: transports behave as asyncio's at their edges"


@check(STEAL)
async def failed_connection_by_sock_closes_it_once() -> None:
    loop = asyncio.get_running_loop()

    def factory() -> Any:
        raise LookupError("no protocol")

    async with serving(Recorder) as (_, port):
        for _ in range(10):
            sock = socket.create_connection(("127.0.0.1", port))
            await raises_async(LookupError, loop.create_connection(factory, sock=sock))
            sock.close()
            # a stranger gets the number: a second close would hit it
            stranger = os.open("/dev/null", os.O_RDONLY)
            await asyncio.sleep(0.005)
            os.fstat(stranger)
            os.close(stranger)


@check(STEAL)
async def cancelled_tls_connection_by_sock_closes_it_once() -> None:
    loop = asyncio.get_running_loop()
    async with serving(Recorder) as (_, port):
        for wait in (0, 1, 2, 3, 10):
            sock = socket.create_connection(("127.0.0.1", port))
            task = asyncio.create_task(
                loop.create_connection(Recorder, sock=sock, ssl=client_tls(), server_hostname="localhost")
            )
            for _ in range(wait):
                await asyncio.sleep(0)
            task.cancel()
            await raises_async(asyncio.CancelledError, task)
            sock.close()
            strangers = [os.open("/dev/null", os.O_RDONLY) for _ in range(3)]
            await asyncio.sleep(0.01)
            for stranger in strangers:
                os.fstat(stranger)
                os.close(stranger)


@check(STEAL)
async def closed_pipe_transport_leaves_its_number_alone() -> None:
    loop = asyncio.get_running_loop()
    for _ in range(10):
        read, write = os.pipe()
        transport, protocol = await loop.connect_read_pipe(Recorder, os.fdopen(read, "rb", 0))
        os.close(write)
        await soon(protocol.lost)
        strangers = [os.open("/dev/null", os.O_RDONLY) for _ in range(2)]
        assert read in strangers
        del transport, protocol
        await asyncio.sleep(0.005)
        for stranger in strangers:
            os.fstat(stranger)
            os.close(stranger)


@check(CANCELLED)
async def number_of_a_cancelled_connect_serves_a_transport() -> None:
    loop = asyncio.get_running_loop()
    async with serving(Echo) as (_, port):
        for _ in range(20):
            task = asyncio.create_task(loop.create_connection(Recorder, "10.255.255.1", 9))
            await asyncio.sleep(0.002)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await task
            transport, protocol = await soon(loop.create_connection(Recorder, "127.0.0.1", port))
            transport.write(b"mine")
            assert await protocol.received(4) == b"mine"
            transport.abort()


@check(CANCELLED)
async def removed_reader_may_be_closed_and_its_number_reused() -> None:
    loop = asyncio.get_running_loop()
    for _ in range(50):
        left, right = socket.socketpair()
        seen: list[int] = []
        loop.add_reader(right, seen.append, 1)
        if _ % 2:
            left.send(b"x")
            await asyncio.sleep(0)
        loop.remove_reader(right)
        left.close()
        right.close()
        count = len(seen)
        left, right = socket.socketpair()
        left.send(b"y")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(seen) == count
        left.close()
        right.close()


@check(TRANSPORT)
async def transport_socket_has_the_methods_of_a_socket() -> None:
    async with pair() as both:
        sock = both.client.get_extra_info("socket")
        sock.shutdown(socket.SHUT_WR)
        await soon(both.server_protocol.eof)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_STREAM
        os.close(os.dup(sock.fileno()))
        sock.dup().close()


@check(TRANSPORT)
async def pausing_twice_and_resuming_in_get_buffer_is_harmless() -> None:
    class Restless(asyncio.BufferedProtocol):
        def __init__(self) -> None:
            self.buffer = bytearray(1024)
            self.count = 0
            self.made = asyncio.get_running_loop().create_future()
            self.lost = asyncio.get_running_loop().create_future()

        def connection_made(self, transport: Any) -> None:
            self.transport = transport
            self.made.set_result(transport)

        def get_buffer(self, sizehint: int) -> bytearray:
            self.transport.pause_reading()
            self.transport.resume_reading()
            return self.buffer

        def buffer_updated(self, nbytes: int) -> None:
            self.count += nbytes

        def connection_lost(self, exc: Exception | None) -> None:
            self.lost.set_result(exc)

    async with pair(server=Restless) as both:
        both.client.write(bytes(50_000))
        await until(lambda: both.server_protocol.count == 50_000)


@check(TRANSPORT)
async def close_in_every_callback_is_harmless() -> None:
    class ClosesOn(Recorder):
        where = "made"

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if self.where == "made":
                transport.close()
                transport.abort()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.where == "data":
                self.transport.abort()
                self.transport.write(b"ignored")

        def eof_received(self) -> bool | None:
            if self.where == "eof":
                self.transport.close()
            return super().eof_received()

    for place in ("made", "data", "eof"):
        kind = type("Closes", (ClosesOn,), {"where": place})
        async with pair(server=kind) as both:
            both.client.write(b"x" * 100)
            if place == "eof":
                both.client.write_eof()
            await soon(both.server_protocol.lost)
            await soon(both.client_protocol.lost)


@check(TRANSPORT)
async def tls_close_while_the_peer_still_reads_is_quick() -> None:
    options = {"ssl": client_tls(), "server_hostname": "localhost"}
    async with pair(client_options=options, ssl=server_tls()) as both:
        both.client.close()
        await soon(both.client_protocol.lost)
        await soon(both.server_protocol.lost)


@check(TRANSPORT)
async def drain_after_the_peer_reset_raises() -> None:
    class Resetting(Recorder):
        def data_received(self, data: bytes) -> None:
            self.transport.abort()

    async with serving(Resetting) as (_, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"x")

        async def keep_writing() -> None:
            for _ in range(1000):
                writer.write(b"y" * 10_000)
                await writer.drain()
                await asyncio.sleep(0.001)

        await raises_async(ConnectionError, soon(keep_writing()))
        writer.close()


@check(TRANSPORT)
async def reading_never_starves_writing_or_timers() -> None:
    loop = asyncio.get_running_loop()
    async with pair() as both:
        going = True
        ticks = 0

        def tick() -> None:
            nonlocal ticks
            ticks += 1
            if going:
                loop.call_later(0.02, tick)

        def more() -> None:
            if going:
                if both.client.get_write_buffer_size() < 1_000_000:
                    both.client.write(bytes(1_000_000))
                loop.call_soon(more)

        tick()
        more()
        await until(lambda: ticks >= 10 and len(both.server_protocol.data) > 10_000_000)
        going = False
