"""What the kernel still works on keeps the file's descriptor and buffers, whatever becomes of the call and the file."""

from __future__ import annotations

import asyncio
import gc
import os
import warnings
from pathlib import Path
from typing import Any

import pytest

import uringloop


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("read", [4096]),
        ("pread", [4096, 0]),
        ("write", [b"new!" * 65536]),  # more than the write buffer holds
        ("pwrite", [b"new!" * 1024, 0]),
    ],
)
def test_a_dropped_file_ends_after_its_last_operation(
    loop: Any, tmp_path: Path, kind: str, arguments: list[Any]
) -> None:
    """The call is cancelled and the file dropped before the kernel is asked again."""
    path = tmp_path / "file"
    path.write_bytes(b"old!" * 1024)

    async def main() -> None:
        file: Any = await uringloop.open_file(path, "r+b", direct=True)
        fd = file.fileno()
        call = getattr(file, kind)(*arguments)
        future = call.send(None)
        assert not future.done()
        call.close()
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            del file, call, future
            gc.collect()
            assert not warned
            assert os.readlink(f"/proc/self/fd/{fd}") == str(path)
            async with asyncio.timeout(20):
                while not warned:
                    await asyncio.sleep(0)
        assert [each.category for each in warned] == [ResourceWarning]
        with pytest.raises(OSError):
            os.fstat(fd)

    loop.run_until_complete(main())
