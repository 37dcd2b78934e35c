"""Operations that the kernel runs one after the other."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import liburing
import pytest

from uringloop import ops


def run(loop: Any, coroutine: Any) -> Any:
    return loop.run_until_complete(coroutine)


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


def test_an_exception_inside_a_chain_submits_nothing(loop: Any, tmp_path: Path) -> None:
    fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)

    async def main() -> None:
        mine = ops.attach()
        for wrong in (KeyError, asyncio.CancelledError):
            with pytest.raises(wrong):
                async with mine.chain() as chain:
                    chain.submit(liburing.io_uring_prep_write, fd, b"never", 0)
                    raise wrong
            assert "0 in the kernel" in repr(mine)
        with pytest.raises(TypeError):
            async with mine.chain() as chain:
                written = chain.submit(liburing.io_uring_prep_write, fd, b"never", 0)
                chain.submit(liburing.io_uring_prep_write, "no descriptor")
        with pytest.raises(asyncio.InvalidStateError):
            written.result()
        assert await mine.submit(liburing.io_uring_prep_nop) == 0
        with pytest.raises(RuntimeError):
            chain.submit(liburing.io_uring_prep_nop)
        with pytest.raises(RuntimeError):
            async with chain:
                pass
        mine.close()

    try:
        run(loop, main())
    finally:
        os.close(fd)
    assert (tmp_path / "f").read_bytes() == b""


def test_a_result_may_be_asked_for_again_and_of_a_cancelled_chain(loop: Any) -> None:
    async def main() -> None:
        source, sink = os.pipe()
        async with ops.chain() as chain:
            first = chain.submit(liburing.io_uring_prep_nop)
        assert (first.result(), first.result()) == (0, 0)

        async def stuck() -> None:
            nonlocal first
            async with ops.chain() as chain:
                first = chain.submit(liburing.io_uring_prep_nop)
                chain.submit(liburing.io_uring_prep_read, source, bytearray(1))

        first = ops.Linked()
        task = asyncio.ensure_future(stuck())
        while not first._flight or not first._flight.done:
            await asyncio.sleep(0)
            if task.done():
                task.result()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(asyncio.InvalidStateError):
            first.result()
        os.close(source)
        os.close(sink)

    run(loop, main())


def test_a_timeout_limits_the_one_it_was_given_with(loop: Any) -> None:
    async def main() -> None:
        source, sink = os.pipe()
        with pytest.raises(TimeoutError):
            async with ops.chain() as chain:
                chain.submit(liburing.io_uring_prep_nop)
                limited = chain.submit(liburing.io_uring_prep_read, source, bytearray(1), timeout=0.01)
                after = chain.submit(liburing.io_uring_prep_nop)
        with pytest.raises(TimeoutError):
            limited.result()
        with pytest.raises(OSError) as raised:
            after.result()
        assert raised.value.errno == errno.ECANCELED
        os.write(sink, b"x")
        async with ops.chain() as chain:
            limited = chain.submit(liburing.io_uring_prep_read, source, bytearray(1), timeout=10)
            after = chain.submit(liburing.io_uring_prep_nop)
        assert (limited.result(), after.result()) == (1, 0)
        os.close(source)
        os.close(sink)

    run(loop, main())


def test_hard_links_after_a_failure_are_cancelled_too(loop: Any) -> None:
    """A hard link: the next one begins although the one before it was cancelled."""

    async def main() -> None:
        mine = ops.attach()
        source, sink = os.pipe()

        async def stuck() -> None:
            async with mine.chain() as chain:
                chain.submit(
                    liburing.io_uring_prep_read, source, bytearray(1), flags=liburing.IOSQE_IO_HARDLINK
                )
                chain.submit(liburing.io_uring_prep_read, source, bytearray(1))

        task = asyncio.ensure_future(stuck())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(10):
            while "0 in the kernel" not in repr(mine):
                await asyncio.sleep(0)
        mine.close()
        os.close(source)
        os.close(sink)

    run(loop, main())
