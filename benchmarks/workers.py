"""What a second thread with a loop of its own brings: the work of two against that of one, in turns. Without the GIL
twice as much at best; with it, no less is what counts."""

from __future__ import annotations

import asyncio
import socket
import statistics
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

TURNS = 3

Unit = Callable[[], Awaitable[int]]


class PingPong(asyncio.Protocol):
    """Sends back what it gets, and counts."""

    def __init__(self) -> None:
        self.count = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # rloop's does not say that it is one

    def data_received(self, data: bytes) -> None:
        self.count += 1
        self.transport.write(data)


@asynccontextmanager
async def calculating() -> AsyncIterator[Unit]:
    """Python that awaits nothing."""

    async def unit() -> int:
        x = 0
        for i in range(2000):
            x = (x * 31 + i) & 0xFFFF
        await asyncio.sleep(0)
        return 1

    yield unit


@asynccontextmanager
async def switching() -> AsyncIterator[Unit]:
    """Tasks that only let each other run."""

    async def yielding() -> None:
        for _ in range(50):
            await asyncio.sleep(0)

    async def unit() -> int:
        await asyncio.gather(*[yielding() for _ in range(10)])
        return 500

    yield unit


@asynccontextmanager
async def echoing() -> AsyncIterator[Unit]:
    """Ten connections to the same loop, a message of 64 bytes to and fro on each."""
    loop, ends = asyncio.get_running_loop(), []
    for _ in range(10):
        for end in socket.socketpair():
            end.setblocking(False)
            ends.append((await loop.create_connection(PingPong, sock=end))[1])
    for protocol in ends[::2]:
        protocol.transport.write(b"x" * 64)

    async def unit() -> int:
        before = sum(protocol.count for protocol in ends)
        await asyncio.sleep(0.002)
        return sum(protocol.count for protocol in ends) - before

    try:
        yield unit
    finally:
        # or they would be closed when they are collected, uvloop's by numbers that may be another's by then
        for protocol in ends:
            protocol.transport.close()
        await asyncio.sleep(0.01)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def streaming() -> AsyncIterator[Unit]:
    """Ten clients by streams on ten connections to a server of the same loop, 1 KB to and fro on each."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    ends = [await asyncio.open_connection(*server.sockets[0].getsockname()[:2]) for _ in range(10)]

    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(bytes(1024))
        await reader.readexactly(1024)

    async def unit() -> int:
        await asyncio.gather(*[exchange(*end) for end in ends])
        return len(ends)

    try:
        yield unit
    finally:
        for _reader, writer in ends:
            writer.close()
        server.close()
        await asyncio.sleep(0.01)


@asynccontextmanager
async def connecting() -> AsyncIterator[Unit]:
    """Ten clients by streams: connect to a server of the same loop, one message to and fro, close."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()[:2]

    async def connect() -> None:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(bytes(64))
        await reader.readexactly(64)
        writer.close()
        await writer.wait_closed()

    async def unit() -> int:
        await asyncio.gather(*[connect() for _ in range(10)])
        return 10

    try:
        yield unit
    finally:
        server.close()
        await asyncio.sleep(0.01)


WORK = {
    "cpu": calculating,
    "switches": switching,
    "echo": echoing,
    "streams": streaming,
    "connections": connecting,
}


def rate_of_workers(
    make_loop: Callable[[], asyncio.AbstractEventLoop], count: int, work: str, seconds: float
) -> float:
    """Units a second of `count` threads, from when all are ready. What fails in one is raised here."""
    done = [0.0] * count
    failed: list[BaseException] = []
    ready = threading.Barrier(count)

    async def main(index: int) -> None:
        async with WORK[work]() as unit:
            await unit()
            ready.wait()
            units, start = 0, time.perf_counter()
            while time.perf_counter() - start < seconds:
                units += await unit()
            done[index] = units / (time.perf_counter() - start)

    def run(index: int) -> None:
        try:
            with asyncio.Runner(loop_factory=make_loop) as runner:
                runner.run(main(index))
        except BaseException as error:
            ready.abort()  # nobody waits for this one
            if not isinstance(error, threading.BrokenBarrierError):
                failed.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return sum(done)


def speed_up(loop: asyncio.AbstractEventLoop, seconds: float, work: str) -> dict[str, float]:
    ones, twos = [], []
    for _ in range(TURNS):
        ones.append(rate_of_workers(type(loop), 1, work, seconds))
        twos.append(rate_of_workers(type(loop), 2, work, seconds))
    return {
        "speed-up": statistics.median(two / one for one, two in zip(ones, twos, strict=True)),
        "rate": statistics.median(twos),
    }
