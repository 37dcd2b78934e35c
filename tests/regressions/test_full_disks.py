"""close() of a file on a full disk raised, and left the file open: each further close() raised again, and the
descriptor stayed. io raises once and closes whatever comes of writing, and so do we."""

from __future__ import annotations

import asyncio
import errno
import gc
import io
import os
import pty
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import uringloop

ROOM = 1 << 18
DISKS = ["disk", "memory", "device", "tmpfs"]
pytestmark = pytest.mark.engines("uring", "epoll")  # the fake engine makes no room short


@pytest.fixture
def limit() -> Iterator[Any]:
    """Sets how long a file may become: a disk that is full there. EFBIG is the error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (soft if size is None else size, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def full(request: pytest.FixtureRequest, tmp_path: Path, limit: Any) -> Iterator[Path]:
    """Where a file has room for so much and no more."""
    if request.param == "device":
        yield Path("/dev/full")
    elif request.param == "disk":
        limit(ROOM)
        yield tmp_path / "file"
    elif request.param == "memory":
        path = Path(f"/dev/shm/uringloop-{os.getpid()}")
        limit(ROOM)
        yield path
        path.unlink()
    else:
        command = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "none", str(tmp_path)]
        if os.geteuid() or subprocess.run(command).returncode:
            pytest.skip("may not mount here")
        yield tmp_path / "file"
        subprocess.run(["umount", str(tmp_path)], check=True)


def raised_by_io(path: Path, mode: str) -> list[Any]:
    """What io's file tells: the error of close(), twice, whether it is closed and whether its descriptor is."""
    file = open(path, mode, buffering=2 * ROOM if "b" in mode else -1)  # noqa: SIM115
    fd = file.fileno()
    told: list[Any] = []
    write = "x" if "b" not in mode else b"x"
    try:
        file.write(write * (ROOM + 100))
    except OSError as error:
        told.append(("write", error.errno))
    for _ in range(2):
        try:
            told.append(file.close())
        except OSError as error:
            told.append(error.errno)
    return [*told[-2:], file.closed, is_open(fd)]


async def raised_by_ours(path: Path, mode: str) -> list[Any]:
    file = await uringloop.open_file(path, mode, buffering=2 * ROOM)
    fd = file.fileno()
    told: list[Any] = []
    await file.write(("x" if "b" not in mode else b"x") * (ROOM + 100))
    for _ in range(2):
        try:
            told.append(await file.close())
        except OSError as error:
            told.append(error.errno)
    return [*told, file.closed, is_open(fd)]


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


@pytest.mark.parametrize("full", DISKS, indirect=True)
@pytest.mark.parametrize("mode", ["wb", "w+b", "ab", "w"])
def test_close_on_a_full_disk_raises_once_and_closes(loop: Any, full: Path, mode: str) -> None:
    if mode == "w+b" and full == Path("/dev/full"):
        pytest.skip("io cannot")
    theirs = raised_by_io(full, mode)
    if full.is_file():
        full.unlink()
    ours = loop.run_until_complete(raised_by_ours(full, mode))
    assert ours[1:] == [None, True, False]
    assert ours[0] in (errno.ENOSPC, errno.EFBIG)
    if mode != "w":  # io's text files write at once what is so long
        assert ours == theirs


@pytest.mark.parametrize("full", DISKS, indirect=True)
@pytest.mark.parametrize("mode", ["wb", "w"])
def test_leaving_the_block_on_a_full_disk_raises_and_closes(loop: Any, full: Path, mode: str) -> None:
    async def main() -> None:
        with pytest.raises(OSError) as raised:
            async with uringloop.open_file(full, mode, buffering=2 * ROOM) as file:
                await file.write(("x" if mode == "w" else b"x") * (ROOM + 1))
                raise KeyError("the block's own")
        assert isinstance(raised.value.__context__, KeyError)
        assert file.closed
        with pytest.raises(ValueError):
            file.fileno()

    loop.run_until_complete(main())


@pytest.mark.parametrize("full", DISKS, indirect=True)
@pytest.mark.parametrize("turns", range(6))
def test_a_cancelled_close_on_a_full_disk_still_closes(loop: Any, full: Path, turns: int) -> None:
    loop.set_exception_handler(lambda loop, context: None)  # nobody waits for the error any more

    async def main() -> None:
        file = await uringloop.open_file(full, "wb", buffering=2 * ROOM)
        fd = file.fileno()
        await file.write(b"x" * (ROOM + 1))
        closing = asyncio.ensure_future(file.close())
        for _ in range(turns):
            await asyncio.sleep(0)
        closing.cancel()
        outcome = (await asyncio.gather(closing, return_exceptions=True))[0]
        assert isinstance(outcome, (OSError, asyncio.CancelledError))
        with suppress(OSError):
            await file.close()
        assert file.closed
        assert not is_open(fd)
        gc.collect()

    loop.run_until_complete(main())


@pytest.mark.parametrize("full", DISKS, indirect=True)
def test_a_failed_close_leaves_a_lent_descriptor_open(loop: Any, full: Path) -> None:
    fd = os.open(full, os.O_WRONLY | os.O_CREAT)

    async def main() -> None:
        file = await uringloop.open_file(fd, "wb", buffering=2 * ROOM, closefd=False)
        await file.write(b"x" * (ROOM + 1))
        with pytest.raises(OSError):
            await file.close()
        assert file.closed

    loop.run_until_complete(main())
    os.close(fd)


@pytest.mark.parametrize("way", ["flush", "seek", "release"])
def test_data_that_did_not_fit_is_written_once_there_is_room(
    loop: Any, tmp_path: Path, limit: Any, way: str
) -> None:
    """Only the end of the file gives it up."""
    path = tmp_path / "file"
    data = os.urandom(ROOM + 100)

    async def main() -> None:
        file = await uringloop.open_file(path, "wb", buffering=2 * ROOM)
        await file.write(data)
        limit(ROOM)
        with pytest.raises(OSError) as raised:
            file.release() if way == "release" else await (file.flush() if way == "flush" else file.seek(0))
        assert raised.value.errno == errno.EFBIG
        assert not file.closed
        limit(None)
        if way == "release":
            os.close(file.release())
        else:
            await file.close()

    loop.run_until_complete(main())
    assert path.read_bytes() == data


@pytest.mark.parametrize("full", DISKS, indirect=True)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_unclosed_file_that_cannot_be_flushed_is_reported(
    loop: Any, full: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: reported.append(report.exc_value))

    async def main() -> int:
        file = await uringloop.open_file(full, "wb", buffering=2 * ROOM)
        await file.write(b"x" * (ROOM + 1))
        return int(file.fileno())

    fd = loop.run_until_complete(main())
    gc.collect()
    assert [error.errno in (errno.ENOSPC, errno.EFBIG) for error in reported] == [True]
    assert reported.pop().filename == str(full)
    assert not is_open(fd)


def test_closing_a_terminal_whose_other_end_is_closed_raises_and_closes(loop: Any) -> None:
    def pair() -> tuple[int, int]:
        master, slave = pty.openpty()
        return master, slave

    async def main() -> tuple[Any, bool]:
        master, slave = pair()
        file = await uringloop.open_file(slave, "wb")
        await file.write(b"x")
        os.close(master)
        with pytest.raises(OSError) as raised:
            await file.close()
        return raised.value.errno, file.closed

    assert loop.run_until_complete(main()) == (errno.EIO, True)
    master, slave = pair()
    file = io.open(slave, "wb")  # noqa: SIM115, UP020
    file.write(b"x")
    os.close(master)
    with pytest.raises(OSError) as raised:
        file.close()
    assert (raised.value.errno, file.closed) == (errno.EIO, True)
