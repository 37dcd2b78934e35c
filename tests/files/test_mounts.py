"""Which filesystems may hang, and that one that does holds up nobody else."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

import uringloop
from tests.files.hanging import CONTENT, HangingFilesystem
from uringloop import fs
from uringloop.files.mounts import filesystem_kind, read_mounts


def test_filesystem_kind_knows_memory_filesystems() -> None:
    assert "memory" in read_mounts().values()
    assert filesystem_kind(os.stat("/dev/shm").st_dev) == "memory"
    assert filesystem_kind(os.stat("/proc").st_dev) == ""
    assert filesystem_kind(10**9) == ""


def test_a_hanging_filesystem_blocks_only_its_own_calls(
    loop: Any, hanging: HangingFilesystem, tmp_path_factory: pytest.TempPathFactory
) -> None:
    slow = hanging.place / "file"
    other = tmp_path_factory.mktemp("other") / "f"
    other.write_text("quick")

    async def opened() -> Any:
        return await uringloop.open_file(slow, "rb")

    async def main() -> None:
        async with uringloop.open_file(slow, "rb") as file:
            assert await file.read() == CONTENT
            hanging.answers.clear()
            waiting = [
                asyncio.ensure_future(call)
                for call in (
                    file.pread(4, 0),
                    opened(),
                    fs.stat(slow),
                    fs.stat(hanging.place / "no"),
                    fs.unlink(slow),
                )
            ]
            for _ in range(20):
                await asyncio.sleep(0.002)
                async with uringloop.open_file(other) as quick:
                    assert await quick.read() == "quick"
            assert not any(call.done() for call in waiting[:2] + waiting[3:])
            hanging.answers.set()
            data, again, found, missing, refused = await asyncio.gather(*waiting, return_exceptions=True)
            assert data == CONTENT[:4]
            assert found.st_size == len(CONTENT)
            assert isinstance(missing, FileNotFoundError)
            assert isinstance(refused, OSError)
            await again.close()

    loop.run_until_complete(asyncio.wait_for(main(), 20))


def test_cancelled_calls_on_a_hanging_filesystem_lose_no_data(loop: Any, hanging: HangingFilesystem) -> None:
    slow = hanging.place / "file"

    async def main() -> None:
        async with uringloop.open_file(slow, "rb") as file:
            hanging.answers.clear()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(file.read(5), 0.02)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(file.tell(), 0.02)  # in turn, after what was cancelled has ended
            hanging.answers.set()
            assert await file.read(5) == CONTENT[:5]
            assert await file.read() == CONTENT[5:]

    loop.run_until_complete(asyncio.wait_for(main(), 20))
