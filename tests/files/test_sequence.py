"""Operations that belong together, cancelled after each number of turns: what they made is gone, or whole."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from uringloop import fs


async def cancelled_after(turns: int, call: Any, again: bool = False) -> None:
    task = asyncio.ensure_future(call)
    for _ in range(turns):
        await asyncio.sleep(0 if turns % 2 else 0.0002)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        pass
    while left := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in left if again else ():  # as asyncio.run does at its end
            task.cancel()
        await asyncio.sleep(0.0005)


@pytest.mark.parametrize("again", [False, True])
def test_a_cancelled_atomic_write_leaves_the_old_file_or_the_new_one(
    loop: Any, tmp_path: Path, again: bool
) -> None:
    async def main() -> None:
        for turns in range(16):
            (tmp_path / "f").write_bytes(b"old")
            await cancelled_after(turns, fs.atomic_write(tmp_path / "f", b"new" * 1000), again)
            assert (tmp_path / "f").read_bytes() in (b"old", b"new" * 1000)
            assert os.listdir(tmp_path) == ["f"]

    loop.run_until_complete(main())


def test_a_cancelled_truncate_leaves_the_old_size_or_the_new_one(loop: Any, tmp_path: Path) -> None:
    async def main() -> None:
        for turns in range(12):
            (tmp_path / "f").write_bytes(b"0123456789")
            await cancelled_after(turns, fs.truncate(tmp_path / "f", 3))
            assert (tmp_path / "f").read_bytes() in (b"0123456789", b"012")

    loop.run_until_complete(main())


def test_truncate_raises_the_errors_of_os_truncate(loop: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")

    async def same(path: Any) -> None:
        with pytest.raises(OSError) as ours:
            await fs.truncate(path, 0)
        with pytest.raises(OSError) as theirs:
            os.truncate(path, 0)
        assert (type(ours.value), ours.value.errno, ours.value.filename) == (
            type(theirs.value),
            theirs.value.errno,
            theirs.value.filename,
        )

    async def main() -> None:
        for path in (tmp_path / "fifo", tmp_path, tmp_path / "no", "/dev/null"):
            await same(path)

    loop.run_until_complete(main())


def test_a_folder_closed_during_a_call_is_not_mistaken_for_another(loop: Any, tmp_path: Path) -> None:
    for name in ("own", "other"):
        (tmp_path / name).mkdir()

    async def main() -> None:
        for turns in range(10):
            folder = os.open(tmp_path / "own", os.O_RDONLY)
            task = asyncio.ensure_future(fs.mkdir(f"{turns}", dir_fd=folder))
            await asyncio.sleep(0)
            task.cancel()
            os.close(folder)
            folder = os.open(tmp_path / "other", os.O_RDONLY)
            await asyncio.wait([task])
            await fs.stat(tmp_path)
            await fs.mkdir("other", dir_fd=folder)
            await fs.rmdir("other", dir_fd=folder)
            os.close(folder)

    loop.run_until_complete(main())
    loop.close()
    assert os.listdir(tmp_path / "other") == []
