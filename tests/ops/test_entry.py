"""Entries are whole before they are in a ring."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import weakref
from pathlib import Path
from typing import Any

import liburing
import pytest

from uringloop import ops
from uringloop.ops.entry import LINK, SILENT


def run(loop: Any, coroutine: Any) -> Any:
    return loop.run_until_complete(coroutine)


def half(sqe: Any, fd: int) -> None:
    liburing.io_uring_prep_write(sqe, fd, b"never", 0)
    raise KeyError


WRONG = [
    (TypeError, lambda ring, fd: ring.submit(liburing.io_uring_prep_write, fd, b"never", 0, timeout="1")),
    (ValueError, lambda ring, fd: ring.submit(liburing.io_uring_prep_write, fd, b"never", 0, timeout=float("nan"))),
    (TypeError, lambda ring, fd: ring.submit(liburing.io_uring_prep_write, fd, b"never", 0, flags="no")),
    (TypeError, lambda ring, fd: ring.submit(liburing.io_uring_prep_write, "no descriptor", b"never", 0)),
    (TypeError, lambda ring, fd: ring.submit(liburing.io_uring_prep_write)),
    (TypeError, lambda ring, fd: ring.submit(None)),
    (KeyError, lambda ring, fd: ring.submit(half, fd)),
    (ValueError, lambda ring, fd: ring.submit(liburing.io_uring_prep_write, fd, b"never", 0, flags=LINK)),
    (ValueError, lambda ring, fd: ring.submit(liburing.io_uring_prep_write, fd, b"never", 0, flags=SILENT)),
]  # fmt: skip


@pytest.mark.parametrize(("error", "call"), WRONG)
def test_a_wrong_argument_leaves_nothing_in_the_ring(loop: Any, ring: Any, error: Any, call: Any) -> None:
    async def main() -> None:
        source, sink = os.pipe()
        os.set_blocking(source, False)
        mine = ops.attach(ring)
        with pytest.raises(error):
            await call(mine, sink)
        assert liburing.io_uring_sq_ready(ring) == 0
        assert await mine.submit(liburing.io_uring_prep_nop) == 0  # not linked to anything
        with pytest.raises(BlockingIOError):
            os.read(source, 100)
        assert "0 in the kernel" in repr(mine)
        mine.close()
        os.close(source)
        os.close(sink)

    run(loop, main())


def test_an_entry_that_the_kernel_refuses_does_not_stop_the_next(loop: Any) -> None:
    async def main() -> None:
        refused, done = await asyncio.gather(
            ops.submit(liburing.io_uring_prep_nop, flags=liburing.IOSQE_BUFFER_SELECT),
            ops.submit(liburing.io_uring_prep_nop),
            return_exceptions=True,
        )
        assert isinstance(refused, OSError)
        assert done == 0

    run(loop, main())


@pytest.mark.parametrize("timeout", [0, -1, -1e300])
def test_a_timeout_that_is_over(loop: Any, timeout: float) -> None:
    async def main() -> None:
        source, sink = os.pipe()
        with pytest.raises(TimeoutError):
            await ops.submit(liburing.io_uring_prep_read, source, bytearray(1), timeout=timeout)
        os.close(source)
        os.close(sink)

    run(loop, main())


@pytest.mark.parametrize("timeout", [1e300, float("inf"), 3])
def test_a_timeout_that_is_long(loop: Any, timeout: float) -> None:
    assert run(loop, ops.submit(liburing.io_uring_prep_nop, timeout=timeout)) == 0


def test_a_cancel_by_other_code_is_not_a_timeout(loop: Any) -> None:
    async def main() -> None:
        source, sink = os.pipe()
        reading = asyncio.ensure_future(
            ops.submit(liburing.io_uring_prep_read, source, bytearray(1), timeout=100)
        )
        await asyncio.sleep(0)
        assert await ops.submit(liburing.io_uring_prep_cancel_fd, source) == 0
        with pytest.raises(OSError) as raised:
            await reading
        assert raised.value.errno == errno.ECANCELED
        assert not isinstance(raised.value, TimeoutError)
        os.close(source)
        os.close(sink)

    run(loop, main())


def test_objects_that_arguments_refer_to_are_kept_alive(loop: Any) -> None:
    class Buffer(bytearray):
        pass

    async def main() -> None:
        source, sink = os.pipe()
        buffers = [Buffer(2), Buffer(3)]
        alive = weakref.ref(buffers[0])
        task = asyncio.ensure_future(
            ops.submit(liburing.io_uring_prep_readv, source, liburing.Iovec(buffers), keep=buffers)
        )
        await asyncio.sleep(0)
        del buffers
        gc.collect()
        assert alive() is not None
        os.write(sink, b"12345")
        assert await task == 5
        del task
        gc.collect()
        assert alive() is None
        os.close(source)
        os.close(sink)

    run(loop, main())


def test_a_path_that_is_made_when_asked_for(loop: Any, tmp_path: Path) -> None:
    """Its bytes are the kernel's to read after the object that was asked has forgotten them."""

    class Fresh:
        def __fspath__(self) -> str:
            return "".join(str(tmp_path))

    async def main() -> None:
        found = [liburing.Statx() for _ in range(50)]
        await asyncio.gather(*(ops.submit(liburing.io_uring_prep_statx, one, Fresh()) for one in found))
        assert {one.ino for one in found} == {tmp_path.stat().st_ino}

    run(loop, main())
