"""Calls in worker threads, cancelled at any moment: they never touch a descriptor that is another file's by then."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import uringloop
from tests.files.hanging import HangingFilesystem
from uringloop import fs
from uringloop._core.engine.workers import FEW
from uringloop.files.threads import in_thread
from uringloop.files.walking import Listing


class Gate:
    """A call that waits in its thread until it is let go on."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.began = threading.Event()
        self.go_on = threading.Event()
        self.over = threading.Event()

    def __call__(self, *args: Any) -> Any:
        self.began.set()
        assert self.go_on.wait(30)
        try:
            return self.call(*args)
        finally:
            self.over.set()


async def cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def until(event: threading.Event) -> None:
    while not event.is_set():
        await asyncio.sleep(0.001)


def test_a_cancelled_call_keeps_its_descriptor(loop: Any, tmp_path: Path) -> None:
    gate = Gate(lambda fd, data: os.write(fd, data))

    async def main() -> None:
        fd = os.open(tmp_path / "own", os.O_WRONLY | os.O_CREAT)
        task = asyncio.ensure_future(in_thread(gate, b"data", fds=(fd,)))
        await until(gate.began)
        await cancelled(task)
        os.close(fd)
        stranger = os.open(tmp_path / "stranger", os.O_WRONLY | os.O_CREAT)
        assert stranger == fd
        gate.go_on.set()
        await until(gate.over)
        os.close(stranger)

    loop.run_until_complete(main())
    assert (tmp_path / "own").read_bytes() == b"data"
    assert (tmp_path / "stranger").read_bytes() == b""
    loop.close()  # which waits for the thread to close it


def test_a_cancelled_copy_writes_to_no_other_file(
    loop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(os.copy_file_range)
    monkeypatch.setattr(os, "copy_file_range", gate)
    (tmp_path / "source").write_bytes(b"x" * 100)

    async def main() -> None:
        before = set(os.listdir("/proc/self/fd"))
        task = asyncio.ensure_future(fs.copyfile(tmp_path / "source", tmp_path / "target"))
        await until(gate.began)
        await cancelled(task)
        strangers = [os.open(tmp_path / f"{n}", os.O_RDWR | os.O_CREAT) for n in range(4)]
        assert before  # their numbers are those that the copy's had, among others
        gate.go_on.set()
        await until(gate.over)
        assert [os.fstat(fd).st_size for fd in strangers] == [0] * 4
        for fd in strangers:
            os.close(fd)

    loop.run_until_complete(main())
    assert (tmp_path / "target").read_bytes() in (b"", b"x" * 100)
    loop.close()


def test_a_file_opened_by_a_cancelled_call_is_closed(loop: Any, tmp_path: Path) -> None:
    gate = Gate(os.open)

    async def main() -> None:
        task = asyncio.ensure_future(
            asyncio.wait_for(uringloop.open_file(tmp_path / "f", "w", opener=gate), 30)
        )
        await until(gate.began)
        await cancelled(task)
        gate.go_on.set()
        await until(gate.over)

    loop.run_until_complete(main())
    loop.close()  # nothing is left: the fixture looks at the descriptors


def test_a_call_cancelled_before_it_began_keeps_no_descriptor(
    loop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()

    async def main() -> None:
        stuck = [asyncio.ensure_future(in_thread(release.wait)) for _ in range(FEW)]
        await asyncio.sleep(0)
        task = asyncio.ensure_future(in_thread(os.fstat, fds=(0, 0)))
        await asyncio.sleep(0)
        await cancelled(task)
        release.set()
        await asyncio.gather(*stuck)

    monkeypatch.setattr("uringloop._core.engine.workers.PATIENCE", 30)
    loop.run_until_complete(main())
    loop.close()


def test_a_folder_is_not_closed_while_it_is_read() -> None:
    class Entries:
        closed = False

        def __iter__(self) -> Any:
            gate()
            assert not self.closed
            return iter(())

        def close(self) -> None:
            self.closed = True

    gate = Gate(lambda: None)
    listing = Listing()
    listing._entries = entries = Entries()
    thread = threading.Thread(target=listing.more)
    thread.start()
    assert gate.began.wait(30)
    listing.close()
    assert not entries.closed
    gate.go_on.set()
    thread.join(30)
    assert entries.closed
    assert listing.more() == []


def test_hanging_calls_block_no_other_call(
    loop: Any, hanging: HangingFilesystem, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")

    async def main() -> None:
        async with uringloop.open_file(hanging.place / "file", "rb") as file:
            hanging.answers.clear()
            stuck = [asyncio.ensure_future(file.pread(4, n)) for n in range(FEW + 1)]
            stuck += [
                asyncio.ensure_future(fs.access(hanging.place / f"{n}", os.R_OK)) for n in range(FEW + 1)
            ]
            await asyncio.sleep(0)
            async with asyncio.timeout(30):
                await fs.mkdir(other / "made")
                assert await fs.listdir(other) == ["made"]
            assert not any(task.done() for task in stuck)
            hanging.answers.set()
            await asyncio.gather(*stuck)

    loop.run_until_complete(main())
    loop.close()


def test_a_file_is_not_closed_while_it_is_synced(loop: Any, hanging: HangingFilesystem) -> None:
    async def main() -> None:
        file = await uringloop.open_file(hanging.place / "file", "rb")
        fd = file.fileno()
        hanging.answers.clear()
        task = asyncio.ensure_future(file.fsync())
        for _ in range(5):
            await asyncio.sleep(0.001)
        await cancelled(task)
        closing = asyncio.ensure_future(file.close())
        for _ in range(5):
            await asyncio.sleep(0.001)
            assert os.readlink(f"/proc/self/fd/{fd}") == str(hanging.place / "file")
        hanging.answers.set()
        await closing
        assert not os.path.lexists(f"/proc/self/fd/{fd}")

    loop.run_until_complete(main())
    loop.close()


def test_a_closed_loop_has_no_threads(new_loop: Any, tmp_path: Path) -> None:
    loop = new_loop()
    loop.run_until_complete(fs.listdir(tmp_path))
    loop.close()
    assert not any("uringloop-files" in thread.name for thread in threading.enumerate())
