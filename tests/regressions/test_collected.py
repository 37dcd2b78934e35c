"""The collector takes loops, waiters, buffers and files apart in any order: none of them uses what it has emptied, and
none loses what it was to give back."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import subprocess
import sys
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import uringloop

Program = Callable[..., subprocess.CompletedProcess[str]]


def test_a_granted_waiter_of_an_unclosed_loop_is_collected_safely(engine: str, program: Program) -> None:
    """ResourceWarning as an error ends asyncio's finalizer before it closes the loop."""
    program(
        """
import asyncio, gc, sys, warnings, uringloop

warnings.simplefilter("error", ResourceWarning)
sys.unraisablehook = lambda _: None

def abandon():
    loop = uringloop.new_event_loop()
    queue = uringloop.Queue()

    async def main():
        task = asyncio.ensure_future(queue.get())
        await asyncio.sleep(0)
        task._log_destroy_pending = False

    loop.run_until_complete(main())
    queue.put_nowait(1)  # granted: in the inbox of the loop, which does not run again

for _ in range(5):
    abandon()
    gc.collect()
""",
        PYTHONMALLOC="debug",
    )


def test_buffers_in_a_cycle_with_a_waiter_for_one_are_collected(engine: str, program: Program) -> None:
    program(
        """
import asyncio, gc, itertools, uringloop
from uringloop.files import FixedBuffers

def abandon(order):
    loop = uringloop.new_event_loop()

    async def main():
        buffers = FixedBuffers(1, 4096)
        view = await buffers.lend()
        task = asyncio.ensure_future(buffers.lend())
        await asyncio.sleep(0)
        task._log_destroy_pending = False
        parts = [view, task, buffers]
        kept = [parts[i] for i in order]
        kept.append(kept)

    loop.run_until_complete(main())
    loop.close()

gc.disable()
for order in itertools.permutations(range(3)):
    abandon(order)
    gc.collect()
""",
        PYTHONMALLOC="debug",
    )


@pytest.mark.parametrize("mode", ["wb", "w"])
def test_a_collected_file_in_a_cycle_writes_its_buffer(loop: Any, tmp_path: Path, mode: str) -> None:
    """As one that is dropped, and as io's."""
    path = tmp_path / "file"

    async def main() -> None:
        file = await uringloop.open_file(path, mode)
        await file.write(b"written" if "b" in mode else "written")
        cycle: list[Any] = [file]
        cycle.append(cycle)

    loop.run_until_complete(main())
    with pytest.warns(ResourceWarning, match="unclosed file"):
        gc.collect()
    assert path.read_bytes() == b"written"


@pytest.mark.engines("uring")
@pytest.mark.parametrize("kind", ["EventLoop", "NeverClosed"])
def test_the_collector_does_not_clear_objects_that_the_kernel_uses(
    engine: str, program: Program, tmp_path: Path, kind: str
) -> None:
    """A loop that is collected is closed, though warnings are errors. Where its finalizer is replaced, what the kernel
    may write to stays."""
    os.mkfifo(tmp_path / "fifo")
    program(
        """
import asyncio, gc, os, sys, warnings
from uringloop._core.awaitables.file_op import FileOp, openat2
from uringloop.loop import EventLoop

class NeverClosed(EventLoop):
    def __del__(self):
        raise RuntimeError

warnings.simplefilter("error", ResourceWarning)
sys.unraisablehook = lambda _: None
path, kind = os.fsencode(sys.argv[1]), globals()[sys.argv[2]]

def abandon():
    loop = kind()

    async def main():
        # A worker of the kernel waits for somebody to open the other end.
        task = asyncio.ensure_future(openat2(loop, -100, path, os.O_RDONLY, 0, 0, True, None))
        await asyncio.sleep(0)
        task._log_destroy_pending = False

    loop.run_until_complete(main())

abandon()
gc.collect()
ops = [each for each in gc.get_objects() if type(each) is FileOp]
assert len(ops) == (kind is NeverClosed)
for op in ops:
    assert op.in_kernel
    assert path in gc.get_referents(op), "what was given to the kernel is freed"
""",
        str(tmp_path / "fifo"),
        kind,
    )


@pytest.mark.contract
def test_accepted_connections_are_closed_if_warnings_are_errors(
    new_loop: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)

    def abandon() -> None:
        loop = new_loop()

        async def main() -> None:
            made: list[asyncio.Future[None]] = [loop.create_future() for _ in range(5)]
            waiting = iter(made)

            class Accepted(asyncio.Protocol):
                def connection_made(self, _: asyncio.BaseTransport) -> None:
                    next(waiting).set_result(None)

            server = await loop.create_server(Accepted, "127.0.0.1", 0)
            clients = [socket.create_connection(server.sockets[0].getsockname()) for _ in made]
            await asyncio.gather(*made)
            server.close()
            for client in clients:
                client.close()

        loop.run_until_complete(main())
        loop.close()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        abandon()
        gc.collect()
        warnings.simplefilter("error", ResourceWarning)
        before = set(os.listdir("/proc/self/fd"))
        abandon()
        gc.collect()
    assert set(os.listdir("/proc/self/fd")) <= before


def test_a_loop_in_debug_mode_closes_despite_an_unclosed_server(loop: Any) -> None:
    """Where warnings are errors: the warning is raised once the loop is closed."""
    loop.set_debug(True)
    server = loop.run_until_complete(loop.create_server(asyncio.Protocol, "127.0.0.1", 0))
    sock = server.sockets[0].dup()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        with pytest.raises(ResourceWarning, match="unclosed server"):
            loop.close()
    assert loop.is_closed()
    server.close()
    sock.close()


@pytest.mark.contract
@pytest.mark.parametrize("kind", [bytearray, memoryview])
@pytest.mark.parametrize("waits", [False, True])
def test_a_collected_send_releases_the_callers_buffer(loop: Any, kind: type, waits: bool) -> None:
    data = bytearray(1 << 24 if waits else 1000)

    async def attempt(data: Any) -> None:
        near, far = socket.socketpair()
        near.setblocking(False)
        if not waits:
            far.close()
        task = asyncio.ensure_future(loop.sock_sendall(near, data))
        await asyncio.sleep(0)
        far.close()
        with suppress(BrokenPipeError, ConnectionResetError):
            await (
                task
            )  # whose exception has a traceback, which refers to this frame, which refers to the task
        assert task.exception() is not None
        near.close()

    loop.run_until_complete(attempt(kind(data)))
    gc.collect()
    data.append(1)  # BufferError while it is exported


@pytest.mark.contract
def test_a_send_that_waits_keeps_the_callers_buffer_in_place(loop: Any) -> None:
    data = bytearray(range(256)) * (1 << 14)
    view = memoryview(data)

    async def main() -> None:
        near, far = socket.socketpair()
        near.setblocking(False)
        far.setblocking(False)
        task = asyncio.ensure_future(loop.sock_sendall(near, view))
        await asyncio.sleep(0)
        view.release()
        with pytest.raises(BufferError):
            data.clear()
        received = bytearray()
        while len(received) < len(data):
            received += await loop.sock_recv(far, 1 << 20)
        await task
        assert received == data
        near.close()
        far.close()

    loop.run_until_complete(main())
    data.clear()


def test_a_collected_write_releases_the_callers_buffer(
    loop: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    class Data(bytearray):
        cycle: list[Any]

    async def attempt() -> weakref.ref[Data]:
        data = Data(1 << 21)  # more than is written at once
        file = await uringloop.open_file(tmp_path / "file", "wb", buffering=0)
        task = asyncio.ensure_future(file.pwrite(data, 0))
        await asyncio.sleep(0)
        data.cycle = [each for each in gc.get_objects() if type(each).__name__ == "Borrowed"]
        assert data.cycle
        await task
        await file.close()
        return weakref.ref(data)

    data = loop.run_until_complete(attempt())
    gc.collect()
    assert data() is None
    assert "exported buffers" not in capfd.readouterr().err
