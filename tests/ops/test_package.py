"""Without python-liburing, and what it says of the core: an independent witness of what the kernel does."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import liburing
import pytest

import uringloop
from uringloop import ops


def run(loop: Any, coroutine: Any) -> Any:
    return loop.run_until_complete(coroutine)


def test_without_the_package_the_extra_is_named(program: Any) -> None:
    code = """
import sys
sys.modules["liburing"] = None
import uringloop
try:
    uringloop.ops
except ImportError as error:
    print(error)
"""
    assert "uringloop-asyncio[liburing]" in program(code).stdout
    assert "liburing" not in program("import uringloop, sys; print(*sys.modules)").stdout.replace(
        "uringloop", ""
    )


# What the core does, seen by another


def test_bytes_written_by_the_core_are_read_by_the_kernels_operations(loop: Any, tmp_path: Path) -> None:
    path = tmp_path / "f"

    async def main() -> None:
        async with uringloop.open_file(path, "wb+") as file:
            await file.write(b"abc" * 1000)
            await file.flush()
            seen = bytearray(5000)
            assert await ops.submit(liburing.io_uring_prep_read, file.fileno(), seen, 0) == 3000
            assert seen[:3000] == b"abc" * 1000

    run(loop, main())
    assert path.read_bytes() == b"abc" * 1000


def test_the_cores_stat_equals_the_kernels_statx(loop: Any, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 12_345)
    os.utime(path, ns=(123_456_789, 987_654_321))

    async def main() -> None:
        seen = liburing.Statx()
        await ops.submit(liburing.io_uring_prep_statx, seen, str(path))
        said = await uringloop.fs.stat(path)
        assert (said.st_size, said.st_ino, said.st_mode, said.st_nlink) == (
            seen.size,
            seen.ino,
            seen.mode,
            seen.nlink,
        )
        assert said.st_mtime_ns == 987_654_321

    run(loop, main())


def test_descriptors_closed_by_the_core_are_closed_for_the_kernel(loop: Any, tmp_path: Path) -> None:
    async def main() -> None:
        file = await uringloop.open_file(tmp_path / "f", "wb")
        fd = file.fileno()
        assert await ops.submit(liburing.io_uring_prep_fsync, fd) == 0
        await file.close()
        with pytest.raises(OSError) as raised:
            await ops.submit(liburing.io_uring_prep_fsync, fd)
        assert raised.value.errno == errno.EBADF

    run(loop, main())


@pytest.mark.parametrize("direct", [False, True])
def test_bytes_in_fixed_buffers_are_the_bytes_in_the_file(loop: Any, tmp_path: Path, direct: bool) -> None:
    path = tmp_path / "f"
    path.write_bytes(bytes(65536))

    async def main() -> None:
        buffers = uringloop.files.FixedBuffers(1, 8192)
        async with uringloop.open_file(path, "r+b", direct=direct) as file:
            with await buffers.lend() as view:
                view[:] = b"f" * 8192
                await file.pwrite(view, 4096)
        seen = bytearray(16384)
        fd = os.open(path, os.O_RDWR)
        try:
            assert await ops.submit(liburing.io_uring_prep_read, fd, seen, 0) == 16384
            assert seen == bytes(4096) + b"f" * 8192 + bytes(4096)
            assert await ops.submit(liburing.io_uring_prep_write, fd, b"g" * 4096, 8192) == 4096
        finally:
            os.close(fd)
        async with uringloop.open_file(path, "rb", direct=direct) as file:
            with await buffers.lend() as view:
                assert await file.pread(view, 4096) == 8192
                assert bytes(view) == b"f" * 4096 + b"g" * 4096

    run(loop, main())


def test_waitid(loop: Any) -> None:
    async def main() -> None:
        child = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
        info = liburing.SigsetT()
        assert (
            await ops.submit(
                liburing.io_uring_prep_waitid, os.P_PID, child.pid, info, os.WEXITED | os.WNOWAIT
            )
            == 0
        )
        assert child.wait() == 3

    run(loop, main())
