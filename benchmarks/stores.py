"""A client of Redis: the loop under test is in the client, and the server has the other core to itself."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.cores import server_and_client_core
from benchmarks.repeat import rate_of
from benchmarks.row import Skipped

TASKS, CALLS = 50, 10
VALUE = b"v" * 100


@contextlib.contextmanager
def redis_server() -> Iterator[str]:
    """A server of our own on a Unix socket, whose path this is: it listens on no port and writes no file."""
    program = shutil.which("redis-server")
    if program is None:
        raise Skipped("redis-server is not installed")
    core = server_and_client_core()[1]
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        path = os.path.join(folder, "socket")
        command = [program, "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder]
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, preexec_fn=lambda: os.sched_setaffinity(0, {core})
        )
        try:
            until = time.monotonic() + 10
            while not os.path.exists(path):
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError("redis-server does not start")
                time.sleep(0.01)
            yield path
        finally:
            process.kill()
            process.wait()


def redis_round_trips(loop: asyncio.AbstractEventLoop, seconds: float) -> dict[str, float]:
    """Tasks that share a pool, as the handlers of a web server do: each call takes a connection of it."""
    try:
        import redis.asyncio as redis
    except ImportError as error:
        raise Skipped(str(error)) from None
    own = os.sched_getaffinity(0)
    operations = 0

    async def run(path: str) -> dict[str, float]:
        pool: Any = redis.ConnectionPool(
            connection_class=redis.UnixDomainSocketConnection, path=path, max_connections=TASKS
        )
        client: Any = redis.Redis(connection_pool=pool)

        async def handler(number: int) -> None:
            nonlocal operations
            for _ in range(CALLS):
                await client.set(f"key {number}", VALUE)
                if await client.get(f"key {number}") != VALUE:
                    raise RuntimeError("another value than was set")
                operations += 2

        async def batch() -> None:
            await asyncio.gather(*[handler(number) for number in range(TASKS)])

        await batch()
        before, done = time.process_time(), operations
        rate = await rate_of(batch, TASKS * CALLS * 2, seconds)
        cpu = (time.process_time() - before) / (operations - done)
        await client.aclose()
        await pool.aclose()
        return {"rate": rate, "cpu": cpu}

    with redis_server() as path:
        os.sched_setaffinity(0, {server_and_client_core()[0]})
        try:
            return loop.run_until_complete(run(path))
        finally:
            os.sched_setaffinity(0, own)
