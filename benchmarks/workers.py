"""What a second thread with a loop of its own brings: the work of two against that of one, in turns. Without the GIL
twice as much at best; with it, no less is what counts."""

from __future__ import annotations

import asyncio
import socket
import statistics
import threading
import time
from collections.abc import Awaitable, Callable

TURNS = 3

Unit = Callable[[], Awaitable[int]]


class PingPong(asyncio.Protocol):
    """Sends back what it gets, and counts."""

    def __init__(self) -> None:
        self.count = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.count += 1
        self.transport.write(data)


async def calculating() -> Unit:
    """Python that awaits nothing."""

    async def unit() -> int:
        x = 0
        for i in range(2000):
            x = (x * 31 + i) & 0xFFFF
        await asyncio.sleep(0)
        return 1

    return unit


async def switching() -> Unit:
    """Tasks that only let each other run."""

    async def yielding() -> None:
        for _ in range(50):
            await asyncio.sleep(0)

    async def unit() -> int:
        await asyncio.gather(*[yielding() for _ in range(10)])
        return 500

    return unit


async def echoing() -> Unit:
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

    return unit


WORK = {"cpu": calculating, "switches": switching, "echo": echoing}


def rate_of_workers(
    make_loop: Callable[[], asyncio.AbstractEventLoop], count: int, work: str, seconds: float
) -> float:
    """Units a second of `count` threads, from when all are ready."""
    done = [0.0] * count
    ready = threading.Barrier(count)

    async def main(index: int) -> None:
        unit = await WORK[work]()
        await unit()
        ready.wait()
        units, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            units += await unit()
        done[index] = units / (time.perf_counter() - start)

    def run(index: int) -> None:
        with asyncio.Runner(loop_factory=make_loop) as runner:
            runner.run(main(index))

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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
