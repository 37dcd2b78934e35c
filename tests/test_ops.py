"""Any io_uring operation, through python-liburing: an independent witness of what the kernel does."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import os
import select
import socket
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

import uringloop
from uringloop._core.probe import refusal

liburing = pytest.importorskip("liburing", reason="python-liburing is an extra, of x86-64")
ops = uringloop.ops

pytestmark = pytest.mark.skipif(refusal() is not None, reason="io_uring is refused here")


def run(loop: Any, coroutine: Any) -> Any:
    return loop.run_until_complete(coroutine)


def test_one_operation(loop: Any, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"0123456789")

    async def main() -> None:
        found = liburing.Statx()
        assert await ops.submit(liburing.io_uring_prep_statx, found, str(path)) == 0
        assert found.size == 10
        fd = os.open(path, os.O_RDWR)
        try:
            buffer = bytearray(4)
            assert await ops.submit(liburing.io_uring_prep_read, fd, buffer, 3) == 4
            assert buffer == b"3456"
            results = await asyncio.gather(
                *(ops.submit(liburing.io_uring_prep_write, fd, b"%d" % i, i) for i in range(10))
            )
            assert results == [1] * 10
        finally:
            os.close(fd)
        with pytest.raises(OSError) as raised:
            await ops.submit(liburing.io_uring_prep_read, 9999, bytearray(4), 0)
        assert raised.value.errno == errno.EBADF

    run(loop, main())
    assert path.read_bytes() == b"0123456789"


def test_more_operations_than_the_ring_has_entries(loop: Any) -> None:
    async def main() -> None:
        assert (
            await asyncio.gather(*(ops.submit(liburing.io_uring_prep_nop) for _ in range(2000))) == [0] * 2000
        )

    run(loop, main())


def test_cancelling_keeps_the_buffer_until_the_kernel_has_ended(loop: Any) -> None:
    class Buffer(bytearray):
        pass

    async def main() -> None:
        source, sink = os.pipe()
        buffer = Buffer(16)
        alive = weakref.ref(buffer)
        task = asyncio.ensure_future(ops.submit(liburing.io_uring_prep_read, source, buffer))
        await asyncio.sleep(0.01)
        with pytest.raises(BufferError):
            buffer.extend(b"more")
        task.cancel()
        del buffer
        with pytest.raises(asyncio.CancelledError):
            await task
        del task
        for _ in range(100):
            gc.collect()
            if alive() is None:
                break
            await asyncio.sleep(0.01)
        assert alive() is None
        os.write(sink, b"still there")
        assert os.read(source, 100) == b"still there"
        os.close(source)
        os.close(sink)

    run(loop, main())


def test_a_cancelled_accept_leaves_no_descriptor(loop: Any) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            for turns in range(6):
                task = asyncio.ensure_future(
                    ops.submit(liburing.io_uring_prep_accept, server.fileno(), None, 0)
                )
                with socket.create_connection(server.getsockname()):
                    for _ in range(turns):
                        await asyncio.sleep(0)
                    task.cancel()
                    try:
                        os.close(await task)
                    except asyncio.CancelledError:
                        pass
            await asyncio.sleep(0.05)

    run(loop, main())


def test_link_timeout(loop: Any) -> None:
    async def main() -> None:
        source, sink = os.pipe()
        with pytest.raises(TimeoutError):
            await ops.submit(liburing.io_uring_prep_read, source, bytearray(1), timeout=0.02)
        os.write(sink, b"x")
        assert await ops.submit(liburing.io_uring_prep_read, source, bytearray(1), timeout=10) == 1
        os.close(source)
        os.close(sink)

    run(loop, main())


def test_chain(loop: Any, tmp_path: Path) -> None:
    fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)

    async def main() -> None:
        back = bytearray(5)
        async with ops.chain() as chain:
            written = chain.submit(liburing.io_uring_prep_write, fd, b"hello", 0)
            synced = chain.submit(liburing.io_uring_prep_fsync, fd)
            read = chain.submit(liburing.io_uring_prep_read, fd, back, 0)
            with pytest.raises(asyncio.InvalidStateError):
                written.result()
        assert (written.result(), synced.result(), read.result(), back) == (5, 0, 5, b"hello")
        with pytest.raises(OSError) as raised:
            async with ops.chain() as chain:
                chain.submit(liburing.io_uring_prep_write, 9999, b"x", 0)
                after = chain.submit(liburing.io_uring_prep_write, fd, b"never", 0)
        assert raised.value.errno == errno.EBADF
        with pytest.raises(OSError) as raised:
            after.result()
        assert raised.value.errno == errno.ECANCELED
        with pytest.raises(KeyError):
            async with ops.chain() as chain:
                chain.submit(liburing.io_uring_prep_write, fd, b"never", 0)
                raise KeyError
        with pytest.raises(TypeError):
            async with ops.chain() as chain:
                chain.submit(liburing.io_uring_prep_nop)
                chain.submit(liburing.io_uring_prep_write, "no descriptor")

    try:
        run(loop, main())
    finally:
        os.close(fd)
    assert (tmp_path / "f").read_bytes() == b"hello"


def test_multishot(loop: Any) -> None:
    async def main() -> None:
        source, sink = os.pipe()
        seen = 0
        async with contextlib.aclosing(
            ops.multishot(liburing.io_uring_prep_poll_multishot, source, select.POLLIN)
        ) as polls:
            os.write(sink, b"x")
            async for completion in polls:
                assert completion.result & select.POLLIN
                os.read(source, 1)
                seen += 1
                if seen == 20:
                    break
                os.write(sink, b"x")
        assert await ops.submit(liburing.io_uring_prep_nop) == 0
        os.close(source)
        os.close(sink)
        with pytest.raises(OSError):
            async for _ in ops.multishot(liburing.io_uring_prep_poll_multishot, source, select.POLLIN):
                pass

    run(loop, main())


def test_a_ring_of_the_users_own(loop: Any) -> None:
    ring = liburing.Ring()
    liburing.io_uring_queue_init(4, ring)

    async def main() -> None:
        mine = ops.attach(ring)
        assert await asyncio.gather(*(mine.submit(liburing.io_uring_prep_nop) for _ in range(20))) == [0] * 20
        with pytest.raises(ValueError, match="no room"):
            async with mine.chain() as chain:
                for _ in range(5):
                    chain.submit(liburing.io_uring_prep_nop)
        assert "0 in the kernel" in repr(mine)
        mine.close()
        mine.close()
        with pytest.raises(RuntimeError):
            await mine.submit(liburing.io_uring_prep_nop)

    run(loop, main())
    sqe = liburing.io_uring_get_sqe(ring)  # still the user's
    liburing.io_uring_prep_nop(sqe)
    assert liburing.io_uring_submit(ring) == 1
    liburing.io_uring_queue_exit(ring)


def test_a_loop_that_closes_drains_the_ring(new_loop: Any) -> None:
    loop = new_loop()
    source, sink = os.pipe()

    async def main() -> None:
        asyncio.ensure_future(ops.submit(liburing.io_uring_prep_read, source, bytearray(10)))
        await asyncio.sleep(0.01)

    run(loop, main())
    for task in asyncio.all_tasks(loop):
        task.cancel()
    run(loop, asyncio.sleep(0))
    loop.close()
    os.write(sink, b"x")
    assert os.read(source, 1) == b"x"
    os.close(source)
    os.close(sink)


def test_other_loops_are_refused() -> None:
    with pytest.raises(RuntimeError, match="uringloop's event loop only"):
        asyncio.run(ops.submit(liburing.io_uring_prep_nop))


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


def test_what_the_core_writes_is_what_the_kernel_has(loop: Any, tmp_path: Path) -> None:
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


def test_what_the_core_says_of_a_file_is_what_the_kernel_says(loop: Any, tmp_path: Path) -> None:
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


def test_what_the_core_closes_is_closed(loop: Any, tmp_path: Path) -> None:
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
def test_what_goes_through_fixed_buffers_is_what_the_kernel_has(
    loop: Any, tmp_path: Path, direct: bool
) -> None:
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
