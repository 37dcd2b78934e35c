"""Calls that read were cancelled after they had taken bytes, and the bytes were gone. Here each call is cancelled after
every number of turns in which it can have got somewhere; the next one reads on from where it began."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import select
import socket
import threading
import tty
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import uringloop
from uringloop.files import walking

TURNS = range(12)
FEW = "one\ntwo\nthree\n"
MORE = b"more\n" * 10  # so that a test of a loop that loses bytes fails, and does not wait for ever
ENDS = ["pipe", "terminal", "socket"]


def two_ends(kind: str) -> tuple[int, int]:
    """Descriptors: what is written to the second is read from the first."""
    if kind == "pipe":
        return os.pipe()
    if kind == "terminal":
        master, slave = pty.openpty()
        tty.setraw(slave)
        return slave, master
    reading, writing = socket.socketpair()
    return reading.detach(), writing.detach()


@asynccontextmanager
async def stream(kind: str, mode: str, buffering: int = -1) -> AsyncIterator[tuple[Any, int]]:
    source, sink = two_ends(kind)
    try:
        async with uringloop.open_file(source, mode, buffering) as file:
            yield file, sink
    finally:
        os.close(sink)


def uncached(path: Path) -> None:
    fd = os.open(path, os.O_RDWR)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


async def cancelled(call: Any, turns: int) -> Any:
    """What the call returns if that many turns are enough for it, else None."""
    task = asyncio.ensure_future(call)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        return None


@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("buffering", [-1, 0, 5])
def test_a_cancelled_readline_leaves_the_line_to_the_next_call(
    loop: Any, kind: str, turns: int, buffering: int
) -> None:
    async def main() -> None:
        async with stream(kind, "rb", buffering) as (file, sink):
            os.write(sink, b"abc")
            assert await cancelled(file.readline(), turns) is None
            os.write(sink, b"def\nghi\n" + MORE)
            assert await file.readline() == b"abcdef\n"
            assert await file.readline() == b"ghi\n"

    loop.run_until_complete(main())


@pytest.mark.parametrize("kind", ENDS)
def test_data_that_arrives_during_a_cancel_comes_after_older_data(loop: Any, kind: str) -> None:
    """It came in front, where an operation ended after its call: many attempts find the moment."""

    async def main() -> None:
        async with stream(kind, "rb", 64) as (file, sink):
            for attempt in range(200):
                os.write(sink, b"abc")
                task = asyncio.ensure_future(file.readline())
                await asyncio.sleep(0)
                while select.select([file.fileno()], [], [], 0)[0]:
                    await asyncio.sleep(0)
                for _ in range(50):
                    await asyncio.sleep(0)
                os.write(sink, b"def")
                for _ in range(attempt % 12):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                os.write(sink, b"ghi\n")
                assert await file.readline() == b"abcdefghi\n"

    loop.run_until_complete(main())


@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("kind", ENDS)
def test_data_taken_by_a_cancelled_readline_comes_first(loop: Any, kind: str, turns: int) -> None:
    """Whatever method comes next, and though two calls may be in line."""

    async def main() -> None:
        async with stream(kind, "rb", 0) as (file, sink):
            os.write(sink, b"abc")
            assert await cancelled(file.readline(), turns) is None
            os.write(sink, b"def" + MORE)
            got = b"".join(await asyncio.gather(file.read(2), file.read(1)))
            into = bytearray(1)
            got += into[: await file.readinto(into)]
            while len(got) < 6:
                got += await file.read(2)
            assert got[:6] == b"abcdef"

    loop.run_until_complete(main())


@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("mode", ["rb", "r", "unbuffered"])
def test_a_cancelled_call_of_readlines_leaves_the_lines_to_the_next_call(
    loop: Any, kind: str, turns: int, mode: str
) -> None:
    buffering, mode = (0, "rb") if mode == "unbuffered" else (-1, mode)

    async def main() -> None:
        async with stream(kind, mode, buffering) as (file, sink):
            os.write(sink, FEW.encode() + b"fo")
            assert await cancelled(file.readlines(), turns) is None
            os.write(sink, b"ur\nfive\n" + MORE)
            lines = [await file.readline() for _ in range(5)]
            text = "".join(lines) if mode == "r" else b"".join(lines).decode()
            assert text == FEW + "four\nfive\n"

    loop.run_until_complete(main())


@pytest.mark.parametrize("mode", ["rb", "r"])
@pytest.mark.parametrize("newline", [None, ""])
def test_a_cancelled_call_of_readlines_does_not_move_the_position(
    loop: Any, tmp_path: Path, mode: str, newline: str | None
) -> None:
    """The position is where it was, for tell() too."""
    if mode == "rb" and newline is not None:
        pytest.skip("bytes have no newlines to translate")
    path = tmp_path / "lines"
    count = 400_000
    path.write_bytes(b"".join(b"%06d\xc3\xa4\r\n" % i for i in range(count)))

    async def main() -> None:
        async with uringloop.open_file(path, mode + "+", newline=newline) as file:
            first = await file.readline()
            place = await file.tell()
            lines = None
            for turns in range(40):
                uncached(path)  # so that reading has to wait
                lines = await cancelled(file.readlines(), turns)
                if lines is not None:
                    break
                assert await file.tell() == place
            assert len(lines or await file.readlines()) == count - 1
            await file.seek(place)
            assert await file.readline() != first

    loop.run_until_complete(main())


@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("kind", ["terminal", "socket"])
def test_a_write_to_a_stream_keeps_the_data_read_ahead(loop: Any, kind: str, turns: int) -> None:
    async def main() -> None:
        async with stream(kind, "r+b", 0) as (file, sink):
            os.write(sink, b"abc")
            assert await cancelled(file.readline(), turns) is None
            assert await file.write(b"answer") == 6
            assert os.read(sink, 100) == b"answer"
            os.write(sink, b"def\n" + MORE)
            assert await file.readline() == b"abcdef\n"

    loop.run_until_complete(main())


@pytest.mark.parametrize("turns", range(5))
@pytest.mark.parametrize("buffering", [-1, 0])
def test_a_cancelled_read_that_used_up_its_share_of_the_turn_loses_no_data(
    loop: Any, buffering: int, turns: int
) -> None:
    """It lets others run before it takes the bytes, and not after."""
    most = 1 << 20
    data = os.urandom(most)

    async def main() -> None:
        async with stream("pipe", "rb", buffering) as (file, sink):
            fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, most)
            assert os.write(sink, data) == most
            got = await cancelled(file.read(most + 1), turns) or b""
            fcntl.fcntl(sink, fcntl.F_SETFL, os.O_NONBLOCK)
            with suppress(BlockingIOError):
                os.write(sink, MORE)
            while len(got) < most:
                more = await file.read1(most)
                got += more
                if more.endswith(MORE):
                    break
            assert got[:most] == data

    loop.run_until_complete(main())


def test_a_cancelled_step_of_scandir_leaves_its_entries_to_the_next_step(
    loop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker had read them by then."""
    names = ["one", "three", "two"]
    for name in names:
        (tmp_path / name).touch()
    have_read = threading.Event()
    more = walking.Listing.more

    def telling(self: Any) -> Any:
        try:
            return more(self)
        finally:
            have_read.set()

    monkeypatch.setattr(walking.Listing, "more", telling)

    async def main() -> list[str]:
        async with uringloop.fs.scandir(tmp_path) as scan:
            task = asyncio.ensure_future(scan.__anext__())
            await asyncio.sleep(0)
            have_read.wait()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            return sorted([entry.name async for entry in scan])

    assert loop.run_until_complete(main()) == names


def test_tasks_that_iterate_over_one_scandir_share_its_entries(loop: Any, tmp_path: Path) -> None:
    names = [f"{number:04}" for number in range(600)]
    for name in names:
        (tmp_path / name).touch()

    async def main() -> None:
        async with uringloop.fs.scandir(tmp_path) as scan:

            async def take() -> list[str]:
                return [entry.name async for entry in scan]

            found = await asyncio.gather(*(take() for _ in range(5)))
        assert sorted(name for part in found for name in part) == names

    loop.run_until_complete(main())
