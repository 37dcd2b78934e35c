"""Defects reported against other loops, as a whole program meets them: processes, threads, io_uring, files, names."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import uringloop
from tests.streams import Recorder, connect, settled

PIPE = asyncio.subprocess.PIPE


@pytest.fixture
def run(loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
    return lambda main: loop.run_until_complete(asyncio.wait_for(main, 30))


def test_path_like_arguments_and_open_descriptors_are_passed_on(run: Any, tmp_path: Path) -> None:
    """zuvloop refused both; anyio #1199, rsloop #37: not every argument of Popen was passed on."""

    async def main() -> None:
        read, write = os.pipe()
        os.set_inheritable(write, True)
        script = tmp_path / "script"
        script.write_text(f"echo from $(pwd -P) > /proc/self/fd/{write}")
        process = await asyncio.create_subprocess_exec(Path("/bin/sh"), script, cwd=tmp_path, close_fds=False)
        assert await process.wait() == 0
        assert os.read(read, 1000).decode() == f"from {tmp_path.resolve()}\n"
        os.close(read)
        os.close(write)

    run(main())


FORK_HOOKS = """
import asyncio, os, uringloop

called = []
os.register_at_fork(before=lambda: called.append("before"), after_in_parent=lambda: called.append("after"))

async def main():
    for options in ({}, {"close_fds": False}, {"start_new_session": True}, {"cwd": "/"}, {"pass_fds": (0,)}):
        process = await asyncio.create_subprocess_exec("true", **options)
        assert await process.wait() == 0
    process = await asyncio.create_subprocess_shell("exit 3", stdin=asyncio.subprocess.PIPE)
    assert await process.wait() == 3

uringloop.run(main())
assert called == [], called
"""


def test_starting_a_program_runs_no_fork_hooks(engine: str, program: Any) -> None:
    """uvloop #749: they are for a Python that goes on in the child, and locks taken there are waited for here."""
    program(FORK_HOOKS)


def test_options_that_run_code_before_exec_do_not_lose_the_status(run: Any) -> None:
    """uvloop #118: whoever asked for a preexec_fn, or for what is one below, held the others up or lost a status."""

    async def one(number: int) -> int | None:
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", f"exit {number}", umask=0o22, process_group=0
        )
        return await process.wait()

    async def main() -> None:
        assert await asyncio.gather(*[one(number) for number in range(20)]) == list(range(20))

    run(main())


USES_NONE = """
import asyncio, uringloop

async def main():
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    assert await reader.read() == b""
    writer.close()
    server.close()
    async with uringloop.open_file("/proc/self/stat") as file:
        assert await file.read()

uringloop.run(main())
print("ok")
"""


def test_the_epoll_engine_never_asks_for_io_uring(program: Any) -> None:
    """uvloop #752: io_uring was used without a word, which a filter of system calls answered with a kill."""
    assert program(USES_NONE, refuse="KILL", URINGLOOP_ENGINE="epoll").stdout == "ok\n"
    killed = program(USES_NONE, refuse="KILL", URINGLOOP_ENGINE="uring", check=False)
    assert killed.returncode == -31, "or the filter proves nothing"


@pytest.mark.engines("uring", "epoll")
def test_serving_a_connection_starts_no_thread(run: Any) -> None:
    """uvloop and rsloop start four, uringcore one."""

    async def main() -> None:
        before = os.listdir("/proc/self/task")
        protocol, peer = await connect()
        peer.send(b"data")
        await protocol.until(4)
        protocol.transport.write(b"data")
        await settled(None)
        assert os.listdir("/proc/self/task") == before
        protocol.transport.abort()
        await protocol.lost
        peer.close()

    threads = threading.enumerate()
    run(main())
    assert threading.enumerate() == threads


@pytest.mark.contract
def test_abstract_names_are_neither_cut_nor_padded(run: Any) -> None:
    """uvloop #528 #659: it was cut at its first null byte, or filled up with them, and led nowhere."""

    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        name = f"\0{os.getpid()}\0{os.urandom(4).hex()}"
        accepted: list[Any] = []

        def accept() -> Recorder:
            accepted.append(Recorder())
            return accepted[-1]  # type: ignore[no-any-return]

        server = await loop.create_unix_server(accept, name)
        assert server.sockets[0].getsockname() == name.encode()
        for wrong in (name[:-1], name + "\0", name.rpartition("\0")[0]):
            with pytest.raises(ConnectionRefusedError):
                await loop.create_unix_connection(Recorder, wrong)
        transport, protocol = await loop.create_unix_connection(Recorder, name)
        assert transport.get_extra_info("peername") == name.encode()
        transport.write(b"here")
        while not accepted:
            await asyncio.sleep(0)
        assert await accepted[0].until(4) == b"here"
        transport.close()
        assert await protocol.lost is None
        assert await accepted[0].lost is None
        server.close()
        await server.wait_closed()

    run(main())


@pytest.mark.engines("uring", "epoll")
@pytest.mark.parametrize("mode", ["r", "rb"])
def test_lines_are_read_from_a_buffer_without_an_operation_each(loop: Any, tmp_path: Path, mode: str) -> None:
    """aiofiles #47 #110, aiofile #88: a hop to a thread, or an operation, for each line."""
    path = tmp_path / "lines"
    path.write_text("".join(f"line {number}\n" for number in range(10_000)))

    async def main() -> int:
        count = 0
        async with uringloop.open_file(path, mode) as file:
            async for _ in file:
                count += 1
        return count

    before = loop.statistics()
    assert loop.run_until_complete(main()) == 10_000
    after = loop.statistics()
    assert after.submitted - before.submitted < 20
    assert after.turns - before.turns < 10_000 / 20


def test_a_transport_has_a_real_socket(run: Any) -> None:
    """niquests #166: what get_extra_info("socket") gave had no working shutdown()."""

    async def main() -> None:
        protocol, peer = await connect()
        sock = protocol.transport.get_extra_info("socket")
        sock.shutdown(socket.SHUT_WR)
        assert await asyncio.get_running_loop().sock_recv(peer, 1) == b""
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_STREAM
        with sock.dup() as again:
            assert again.getpeername() == peer.getsockname() == protocol.transport.get_extra_info("peername")
        protocol.transport.abort()
        await protocol.lost
        peer.close()

    run(main())
