"""On a free-threaded Python, nothing done per connection, task or call stops the other threads.

CPython stops the world for some things that cost nothing elsewhere: an assignment to `__class__`, a change of a type
that is in use. It waits until each other thread looks whether it should stop, which a loop in compiled code does late.
gdb counts the stops."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig

import pytest

pytestmark = [
    pytest.mark.skipif(
        not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="only a free-threaded Python stops the world"
    ),
    pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed, which counts the stops"),
]

# Does WHAT so many times, after it has done it once.
PROGRAM = """
import asyncio, gc, os, socket, sys, tempfile
import uringloop

gc.disable()  # a collection stops the world, too, and comes now and then

WHAT, TIMES = sys.argv[1], int(sys.argv[2])

async def echo(reader, writer):
    writer.write(await reader.readexactly(10))
    await writer.drain()
    writer.close()
    await writer.wait_closed()

class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.write(data)
        self.transport.close()

async def served(serve):
    async def once():
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"x" * 10)
        assert await reader.readexactly(10) == b"x" * 10
        writer.close()
        await writer.wait_closed()

    server = await serve()
    address = server.sockets[0].getsockname()[:2]
    return once

async def by_streams():
    return await served(lambda: asyncio.start_server(echo, "127.0.0.1", 0))

async def by_protocol():
    loop = asyncio.get_running_loop()
    return await served(lambda: loop.create_server(Echo, "127.0.0.1", 0))

async def tasks():
    async def once():
        await asyncio.gather(asyncio.create_task(asyncio.sleep(0)), asyncio.sleep(0.0001))
        task = asyncio.create_task(asyncio.sleep(60))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    return once

async def readers():
    loop = asyncio.get_running_loop()
    left, right = socket.socketpair()

    async def once():
        arrived = loop.create_future()
        loop.add_reader(left, arrived.set_result, None)
        right.send(b"x")
        await arrived
        loop.remove_reader(left)
        left.recv(1)
    return once

async def sockets():
    loop = asyncio.get_running_loop()
    left, right = socket.socketpair()
    left.setblocking(False)
    right.setblocking(False)

    async def once():
        receiving = asyncio.ensure_future(loop.sock_recv(left, 10))
        await asyncio.sleep(0)
        await loop.sock_sendall(right, b"hello")
        await receiving
    return once

async def datagrams():
    loop = asyncio.get_running_loop()

    async def once():
        transport, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0))
        transport.sendto(b"x", transport.get_extra_info("sockname"))
        transport.close()
        await asyncio.sleep(0)
    return once

async def jobs():
    scheduler = uringloop.Scheduler(workers=1)
    scheduler.start()

    async def job():
        await asyncio.sleep(0)

    async def once():
        await scheduler.submit(job())
    return once

async def locks():
    lock, event = uringloop.Lock(), uringloop.Event()

    async def once():
        async with lock:
            waiting = asyncio.create_task(lock.acquire())
            await asyncio.sleep(0)
        await waiting
        lock.release()
    return once

async def files():
    path = os.path.join(tempfile.mkdtemp(), "file")

    async def once():
        async with uringloop.open_file(path, "wb") as file:
            await file.write(b"x")
    return once

async def planted():
    class Other(asyncio.StreamReader):
        pass

    async def once():
        asyncio.StreamReader().__class__ = Other
    return once

async def main():
    once = await globals()[WHAT]()
    for _ in range(1 + TIMES):
        await once()
    sys.stdout.flush()
    os._exit(0)

uringloop.run(main())
"""


def stops(engine: str, *arguments: str) -> int:
    counted = subprocess.run(
        [shutil.which("gdb") or "", "-q", "-nx", "-batch", "-ex", "set breakpoint pending off"]
        + [
            "-ex",
            "break stop_the_world",
            "-ex",
            "ignore 1 1000000000",
            "-ex",
            f"set environment URINGLOOP_ENGINE={engine}",
        ]
        + ["-ex", "run", "-ex", "info breakpoints", "--args", sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )
    if "exited normally" not in counted.stdout:
        if "ptrace" in counted.stderr or "stop_the_world" in counted.stderr:
            pytest.skip(f"gdb can not count here: {counted.stderr.strip().splitlines()[-1]}")
        raise AssertionError(counted.stdout + counted.stderr)
    found = re.search(r"breakpoint already hit (\d+) times", counted.stdout)
    return int(found[1]) if found else 0


WHATS = re.findall(r"^async def (\w+)\(\):$", PROGRAM, re.MULTILINE)


@pytest.mark.parametrize("what", [name for name in WHATS if name not in ("main", "planted")])
def test_repeated_work_never_stops_the_world(engine: str, what: str) -> None:
    if engine == "fake":
        pytest.skip("the simulated kernel has debug checks of its own")
    assert stops(engine, what, "60") - stops(engine, what, "10") == 0


def test_the_count_includes_a_planted_stop() -> None:
    assert stops("auto", "planted", "60") - stops("auto", "planted", "10") == 50


def test_the_program_covers_eleven_kinds_of_work() -> None:
    assert len(WHATS) == 11
