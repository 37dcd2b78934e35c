"""Many connections, many loops, nothing left behind."""

from __future__ import annotations

import asyncio
import gc
import resource
import threading

from compat.behaviours import check
from compat.behaviours.helpers import (
    Echo,
    Recorder,
    client_tls,
    new_loop,
    open_fds,
    pair,
    server_tls,
    serving,
    soon,
    until,
)

MANY = "1000 connections; 300 connect/abort cycles (fd reuse)"
LEAKS = "100 loop create/close cycles leak no fds"


@check(MANY)
async def a_thousand_connections() -> None:
    loop = asyncio.get_running_loop()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    try:
        await _connect_and_talk(loop)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def _connect_and_talk(loop: asyncio.AbstractEventLoop) -> None:
    async with serving(Echo, backlog=1024) as (_, port):
        ends = []
        for _ in range(20):
            ends += await asyncio.gather(
                *(loop.create_connection(Recorder, "127.0.0.1", port) for _ in range(50))
            )
        for number, (transport, _) in enumerate(ends):
            transport.write(b"%d" % number)
        for number, (_, protocol) in enumerate(ends):
            assert await protocol.received(len(b"%d" % number)) == b"%d" % number
        for transport, _ in ends:
            transport.close()
        for _, protocol in ends:
            await soon(protocol.lost)


@check(MANY)
async def three_hundred_connect_and_abort_cycles() -> None:
    loop = asyncio.get_running_loop()
    async with serving(Echo) as (_, port):
        for number in range(300):
            transport, protocol = await soon(loop.create_connection(Recorder, "127.0.0.1", port))
            if number % 3:
                transport.write(b"some data")
            if number % 3 == 2:
                await protocol.received(9)
            transport.abort()
            if number % 2:
                await soon(protocol.lost)
        transport, protocol = await soon(loop.create_connection(Recorder, "127.0.0.1", port))
        transport.write(b"still fine")
        assert await protocol.received(10) == b"still fine"


@check(MANY)
async def cancelled_connects_leave_nothing() -> None:
    loop = asyncio.get_running_loop()
    async with serving(Recorder) as (_, port):
        await asyncio.sleep(0.01)
        before = len(open_fds())
        for number in range(100):
            task = asyncio.create_task(loop.create_connection(Recorder, "127.0.0.1", port))
            for _ in range(number % 5):
                await asyncio.sleep(0)
            task.cancel()
            try:
                transport, _ = await task
                transport.abort()
            except asyncio.CancelledError:
                pass
        del task
        gc.collect()
        await until(lambda: len(open_fds()) <= before)


@check(LEAKS)
def a_hundred_loops_leak_no_descriptors() -> None:
    async def work() -> None:
        async with pair(server=Echo) as both:
            both.client.write(b"x")
            await both.client_protocol.received(1)
            both.client.close()
            await soon(both.server_protocol.lost)

    new_loop().close()
    for number in range(100):
        loop = new_loop()
        if number % 2:
            loop.run_until_complete(work())
        loop.close()
        if number == 10:
            gc.collect()
            before, threads = len(open_fds()), threading.active_count()
    gc.collect()
    assert len(open_fds()) <= before, (before, len(open_fds()))
    assert threading.active_count() <= threads


@check(LEAKS)
def closing_a_loop_closes_what_was_open() -> None:
    async def leave_open() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Recorder, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        transport, _ = await loop.create_connection(Recorder, "127.0.0.1", port)
        transport.write(bytes(1_000_000))
        await asyncio.sleep(0.01)

    new_loop().close()
    before = open_fds()
    loop = new_loop()
    loop.run_until_complete(leave_open())
    loop.close()
    del loop
    # the other end's buffers and the loop itself may be in cycles
    for _ in range(3):
        gc.collect()
    assert open_fds() <= before


@check(LEAKS)
def tls_connections_leak_no_objects() -> None:
    async def work() -> None:
        options = {"ssl": client_tls(), "server_hostname": "localhost"}
        async with pair(client_options=options, ssl=server_tls()) as both:
            both.client.write(b"x")
            await both.server_protocol.received(1)
            both.client.close()
            await soon(both.client_protocol.lost)
            await soon(both.server_protocol.lost)

    def protocols() -> int:
        gc.collect()
        return sum(type(each) is Recorder for each in gc.get_objects())

    loop = new_loop()
    loop.run_until_complete(work())
    before = protocols()
    for _ in range(20):
        loop.run_until_complete(work())
    assert protocols() <= before + 2, protocols()
    loop.close()
