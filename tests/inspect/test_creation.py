"""Debug mode says where that was made which nobody closed."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import subprocess
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import uringloop

OURS = ("unclosed transport", "unclosed file", "unclosed server")


@pytest.fixture
def debugged(loop: Any) -> Any:
    loop.set_debug(True)
    return loop


def reports(what: str | tuple[str, ...], act: Callable[[], object]) -> list[warnings.WarningMessage]:
    """The warnings that begin so, of what is done and dropped."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        act()
        gc.collect()
    return [each for each in said if str(each.message).startswith(what)]


async def connect_and_forget(loop: Any) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
        transport.pause_reading()
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def forget_transport(loop: Any) -> None:
    await connect_and_forget(loop)
    for _ in range(3):
        await asyncio.sleep(0)


async def open_and_forget(path: Path, mode: str) -> None:
    await uringloop.open_file(path, mode)


async def serve_and_forget(sock: socket.socket) -> None:
    await asyncio.start_server(lambda reader, writer: None, sock=sock)


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock


def test_a_transport(debugged: Any) -> None:
    (report,) = reports("unclosed transport", lambda: debugged.run_until_complete(forget_transport(debugged)))
    assert "made at (most recent call last)" in str(report.message)
    assert "in connect_and_forget" in str(report.message)
    assert isinstance(report.source, asyncio.Transport)


@pytest.mark.parametrize("mode", ["r", "rb", "w", "ab"])
def test_a_file(debugged: Any, tmp_path: Path, mode: str) -> None:
    path = tmp_path / "f"
    path.touch()
    (report,) = reports("unclosed file", lambda: debugged.run_until_complete(open_and_forget(path, mode)))
    assert "made at (most recent call last)" in str(report.message)
    assert "in open_and_forget" in str(report.message)


def test_pipes_and_a_process(debugged: Any) -> None:
    processes: list[subprocess.Popen[bytes]] = []

    async def start_and_forget() -> None:
        reading, writing = os.pipe()
        await debugged.connect_read_pipe(asyncio.Protocol, os.fdopen(reading, "rb", 0))
        await debugged.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(writing, "wb", 0))
        nothing: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"))
        transport, _ = await debugged.subprocess_exec(asyncio.SubprocessProtocol, "sleep", "60", **nothing)
        processes.append(transport.get_extra_info("subprocess"))

    def act() -> None:
        debugged.run_until_complete(start_and_forget())
        debugged.close()

    found = reports("unclosed transport", act)
    processes[0].wait()  # which the transport has killed
    kinds = {str(each.message).split()[2].strip("<") for each in found}
    assert kinds == {"ReadPipeTransport", "WritePipeTransport", "SubprocessTransport"}
    assert all("in start_and_forget" in str(each.message) for each in found)
    assert all(isinstance(each.source, asyncio.BaseTransport) for each in found)


def test_a_server(debugged: Any, listening: socket.socket) -> None:
    def act() -> None:
        debugged.run_until_complete(serve_and_forget(listening))
        debugged.close()

    (report,) = reports("unclosed server", act)
    assert "in serve_and_forget" in str(report.message)
    assert isinstance(report.source, asyncio.Server)


def test_a_server_that_was_closed_is_no_report(debugged: Any) -> None:
    async def main() -> None:
        async with await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0):
            pass

    def act() -> None:
        debugged.run_until_complete(main())
        debugged.close()

    assert reports("unclosed server", act) == []


def test_without_debug_mode_the_place_is_not_remembered(
    loop: Any, tmp_path: Path, listening: socket.socket
) -> None:
    (tmp_path / "f").touch()

    def act() -> None:
        loop.run_until_complete(forget_transport(loop))
        loop.run_until_complete(open_and_forget(tmp_path / "f", "r"))
        loop.run_until_complete(serve_and_forget(listening))
        loop.close()

    found = reports(OURS, act)
    assert {str(each.message).split()[1] for each in found} == {"transport", "file"}
    assert not any("made at" in str(each.message) for each in found)


@pytest.fixture
def tracing() -> Iterator[None]:
    tracemalloc.start(10)
    yield
    tracemalloc.stop()


def test_tracemalloc_knows_the_source(tracing: None, debugged: Any, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.touch()

    def act() -> None:
        debugged.run_until_complete(forget_transport(debugged))
        debugged.run_until_complete(open_and_forget(path, "r"))

    found = reports(OURS, act)
    assert len(found) == 2
    for each in found:
        traceback = tracemalloc.get_object_traceback(each.source)
        assert traceback is not None
        assert any(frame.filename == __file__ for frame in traceback)
