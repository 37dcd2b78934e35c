"""Loop services that are neither scheduling nor a server: subprocesses, name look-ups, the executor."""

from __future__ import annotations

import asyncio
import shutil
import socket

from benchmarks.repeat import rate_of
from benchmarks.row import Skipped


def subprocesses(loop: asyncio.AbstractEventLoop, seconds: float, at_once: int = 1) -> dict[str, float]:
    """Start /bin/true and wait for its end."""
    program = shutil.which("true")
    if program is None:
        raise Skipped("no program named true")
    batch = 8

    async def spawn() -> None:
        process = await asyncio.create_subprocess_exec(program)
        if await process.wait():
            raise RuntimeError("true was not")

    async def batch_of_spawns() -> None:
        for _ in range(batch // at_once):
            await asyncio.gather(*[spawn() for _ in range(at_once)])

    return {"rate": loop.run_until_complete(rate_of(batch_of_spawns, batch, seconds))}


def getaddrinfo(loop: asyncio.AbstractEventLoop, seconds: float) -> dict[str, float]:
    """The look-up of an address that is a literal already: nothing to look up."""
    batch = 200

    async def look_up() -> None:
        for _ in range(batch):
            await loop.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)

    found = loop.run_until_complete(loop.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM))
    if found[0][4] != ("127.0.0.1", 80):
        raise RuntimeError(f"wrong answer: {found!r}")
    return {"rate": loop.run_until_complete(rate_of(look_up, batch, seconds))}


def executor(loop: asyncio.AbstractEventLoop, seconds: float, at_once: int = 1) -> dict[str, float]:
    """run_in_executor of an empty function, one after the other or many at once."""
    batch = 200

    def nothing() -> None:
        pass

    async def runs() -> None:
        for _ in range(batch // at_once):
            if at_once == 1:
                await loop.run_in_executor(None, nothing)
            else:
                await asyncio.gather(*[loop.run_in_executor(None, nothing) for _ in range(at_once)])

    return {"rate": loop.run_until_complete(rate_of(runs, batch, seconds))}
