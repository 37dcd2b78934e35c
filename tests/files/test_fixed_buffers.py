"""Pinned buffers: what is transferred through them, and that they stay where they are until the kernel is done."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import uringloop
from tests.files.hanging import CONTENT, HangingFilesystem
from uringloop.files import FixedBuffers

Program = Callable[..., Any]
Feature = Callable[[str], bool]

CONTENTS = b"".join(b"%07d\n" % i for i in range(40_000))  # 78 pages and a part of one


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "f"
    found.write_bytes(CONTENTS)
    return found


def address(view: memoryview) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(view))


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


# Lending


def test_a_buffer_is_lent_until_its_last_view_is_released(loop: Any) -> None:
    async def main() -> None:
        buffers = FixedBuffers(3, 5000)
        views = [await buffers.lend(), buffers.lend_nowait(), await buffers.lend()]
        places = {address(view) for view in views}
        assert len(places) == 3
        assert not any(place % 4096 for place in places)
        assert {len(view) for view in views} == {5000}
        assert not any(view.readonly for view in views)
        assert buffers.statistics()["lent"] == 3
        with pytest.raises(BlockingIOError):
            buffers.lend_nowait()
        part = views[0][10:20]
        views[0].release()
        with pytest.raises(BlockingIOError):
            buffers.lend_nowait()  # a part is a view as well
        part.release()
        with buffers.lend_nowait() as again:
            assert address(again) in places
        assert buffers.statistics()["lent"] == 2
        del views[1]
        assert "1 lent, 0 waiting" in repr(buffers)

    loop.run_until_complete(main())


def test_waiters_get_buffers_in_the_order_of_their_calls(loop: Any) -> None:
    got = []

    async def main() -> None:
        buffers = FixedBuffers(1, 100)
        first = await buffers.lend()

        async def borrower(number: int) -> None:
            with await buffers.lend():
                got.append(number)
                await asyncio.sleep(0)

        tasks = [asyncio.ensure_future(borrower(i)) for i in range(6)]
        await turns(2)
        assert buffers.statistics()["waiting"] == 6
        tasks[0].cancel()
        tasks[3].cancel()
        first.release()
        with pytest.raises(BlockingIOError):
            buffers.lend_nowait()  # it is somebody's already
        tasks[1].cancel()  # to whom it was just given
        await asyncio.gather(*tasks, return_exceptions=True)
        assert buffers.statistics()["lent"] == 0

    loop.run_until_complete(main())
    assert got == [2, 4, 5]


def test_closed_buffers_refuse_to_lend(loop: Any) -> None:
    async def main() -> None:
        with FixedBuffers(1, 100) as buffers:
            view = await buffers.lend()
            waiting = asyncio.ensure_future(buffers.lend())
            await turns(2)
            assert not buffers.closed
        assert buffers.closed and "closed" in repr(buffers)
        with pytest.raises(RuntimeError, match="closed"):
            await waiting
        with pytest.raises(RuntimeError, match="closed"):
            await buffers.lend()
        with pytest.raises(RuntimeError, match="closed"):
            buffers.lend_nowait()
        view[:3] = b"abc"  # what was lent stays
        assert bytes(view[:3]) == b"abc"
        buffers.close()
        assert buffers.statistics()["registered"] is False

    loop.run_until_complete(main())


@pytest.mark.parametrize(("count", "size"), [(0, 1), (1, 0), (-1, 10), (2**40, 1), (1, 2**40), (2**20, 4096)])
def test_invalid_counts_and_sizes_are_refused(loop: Any, count: int, size: int) -> None:
    async def main() -> None:
        with pytest.raises(ValueError):
            FixedBuffers(count, size)

    loop.run_until_complete(main())


def test_fixed_buffers_refuse_other_event_loops() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="uringloop's event loop only"):
            FixedBuffers(1, 1)

    asyncio.run(main())
    with pytest.raises(RuntimeError, match="no event loop is running"):
        FixedBuffers(1, 1)


def test_threads_can_lend_and_return_buffers_concurrently(loop: Any) -> None:
    async def main() -> None:
        buffers = FixedBuffers(3, 100)
        wrong: list[int] = []

        def borrower(mark: int) -> None:
            for _ in range(300):
                try:
                    view = buffers.lend_nowait()
                except BlockingIOError:
                    continue
                with view:
                    view[0] = mark
                    if view[0] != mark:
                        wrong.append(mark)

        threads = [threading.Thread(target=borrower, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(50):
            with await buffers.lend() as view:  # woken by whichever thread gives one back
                view[0] = 99
                await asyncio.sleep(0)
                assert view[0] == 99
        await asyncio.get_running_loop().run_in_executor(None, lambda: [thread.join() for thread in threads])
        assert wrong == []
        assert buffers.statistics()["lent"] == 0

    loop.run_until_complete(main())


# Transfers


@pytest.mark.parametrize("direct", [False, True])
def test_reads_into_a_buffer_return_the_contents_of_the_file(
    loop: Any, path: Path, direct: bool, feature: Feature
) -> None:
    async def main() -> None:
        buffers = FixedBuffers(2, 65536)
        async with uringloop.open_file(path, "rb", direct=direct) as file:
            with await buffers.lend() as view:
                for size, offset in [
                    (65536, 0),
                    (65536, 131072),
                    (4096, 4096),
                    (100, 4096),
                    (65536, 7),
                    (65536, len(CONTENTS) - 8),
                    (65536, len(CONTENTS) // 4096 * 4096),
                    (65536, 2 * len(CONTENTS)),
                    (0, 0),
                ]:
                    view[:] = bytes(65536)
                    expected = CONTENTS[offset : offset + size]
                    assert await file.pread(view[:size], offset) == len(expected)
                    assert bytes(view[: len(expected)]) == expected
                assert await file.pread(view[1:10], 20) == 9
                assert bytes(view[1:10]) == CONTENTS[20:29]
                got = b""
                while count := await file.readinto(view[: 4096 * (1 + len(got) % 3)]):
                    got += view[:count]
                assert got == CONTENTS
                assert await file.tell() == len(CONTENTS)
                await file.seek(5)
                assert await file.read(3) == CONTENTS[5:8]  # which reads ahead
                assert await file.readinto(view[:4096]) == 4096
                assert bytes(view[:4096]) == CONTENTS[8:4104]
        found = buffers.statistics()
        assert found["registered"] == feature("fixed_buffers")
        if direct:
            assert bool(found["transfers"]) == feature("fixed_buffers")

    loop.run_until_complete(main())


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("buffering", [0, 10_000])
def test_writes_from_a_buffer_store_its_contents_in_the_file(
    loop: Any, path: Path, direct: bool, buffering: int, feature: Feature
) -> None:
    async def main() -> None:
        buffers = FixedBuffers(1, 65536)
        async with uringloop.open_file(path, "r+b", buffering, direct=direct) as file:
            with await buffers.lend() as view:
                view[:] = b"w" * 65536
                assert await file.pwrite(view[:8192], 4096) == 8192
                await file.seek(65536)
                assert await file.write(view) == 65536
                assert await file.tell() == 131072
        assert bool(buffers.statistics()["transfers"]) == (feature("fixed_buffers") and direct) or not direct

    loop.run_until_complete(main())
    expected = CONTENTS[:4096] + b"w" * 8192 + CONTENTS[12288:65536] + b"w" * 65536 + CONTENTS[131072:]
    assert path.read_bytes() == expected


def test_many_tasks_can_transfer_concurrently(loop: Any, path: Path) -> None:
    async def main() -> None:
        buffers = FixedBuffers(4, 8192)
        async with uringloop.open_file(path, "r+b", direct=True) as file:

            async def one(i: int) -> None:
                with await buffers.lend() as view:
                    offset = i % 36 * 8192
                    assert await file.pread(view, offset) == 8192
                    assert bytes(view) == CONTENTS[offset : offset + 8192]
                    assert await file.pwrite(view, offset) == 8192

            await asyncio.gather(*(one(i) for i in range(72)))

    loop.run_until_complete(main())
    assert path.read_bytes() == CONTENTS


def test_pread_fills_only_fixed_buffers_in_place(loop: Any, path: Path) -> None:
    async def main() -> None:
        buffers = FixedBuffers(1, 100)
        async with uringloop.open_file(path, "rb") as file:
            for wrong in (bytearray(10), memoryview(bytearray(10)), "text", [1], None, 1.5):
                with pytest.raises(TypeError):
                    await file.pread(wrong, 0)
            view = await buffers.lend()
            with pytest.raises(BufferError):
                await file.pread(view.toreadonly(), 0)
            with pytest.raises(OSError):
                await file.pread(view, -1)
            view.release()
            with pytest.raises(ValueError):
                await file.pread(view, 0)
        source, sink = os.pipe()
        async with uringloop.open_file(source, "rb") as reader, uringloop.open_file(sink, "wb") as writer:
            with await buffers.lend() as view:
                with pytest.raises(OSError):
                    await reader.pread(view, 0)
                reading = asyncio.ensure_future(reader.readinto(view[:5]))
                await turns(2)
                await writer.write(b"hello")
                await writer.flush()
                assert await reading == 5
                assert bytes(view[:5]) == b"hello"

    loop.run_until_complete(main())


# Nothing is lent again before the kernel is done with it


async def hung_read(hanging: HangingFilesystem, file: Any, view: memoryview) -> asyncio.Future[int]:
    """A read that its filesystem does not answer."""
    assert await file.pread(view, 0) == len(CONTENT)
    hanging.answers.clear()
    hanging.asked.clear()
    reading = asyncio.ensure_future(file.pread(view, 0))
    while not hanging.asked:
        await asyncio.sleep(0.001)
    return reading


def until_answered(
    loop: Any, hanging: HangingFilesystem, test: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Whatever fails, the filesystem answers in the end: what waits for it can not even be killed."""
    try:
        loop.run_until_complete(asyncio.wait_for(test(), 20))
    finally:
        hanging.answers.set()


def test_a_cancelled_transfer_keeps_its_buffer_until_it_ends(loop: Any, hanging: HangingFilesystem) -> None:
    async def main() -> None:
        buffers = FixedBuffers(1, 4096)
        async with uringloop.open_file(hanging.place / "file", "rb") as file:
            view = await buffers.lend()
            reading = await hung_read(hanging, file, view)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            view.release()
            del view, reading
            lending = asyncio.ensure_future(buffers.lend())
            await turns(20)
            assert not lending.done()
            assert buffers.statistics()["lent"] == 1
            buffers_of_the_same_loop = FixedBuffers(1, 4096)
            hanging.answers.set()
            with await lending as view:
                view[:] = bytes(4096)
                assert await file.pread(view, 0) == len(CONTENT)
                assert bytes(view[: len(CONTENT)]) == CONTENT
            assert buffers_of_the_same_loop.statistics()["lent"] == 0

    until_answered(loop, hanging, main)


def test_buffers_closed_during_a_transfer_keep_their_memory(loop: Any, hanging: HangingFilesystem) -> None:
    async def main() -> None:
        async with uringloop.open_file(hanging.place / "file", "rb") as file:
            with FixedBuffers(2, 4096) as buffers, await buffers.lend() as view:
                reading = await hung_read(hanging, file, view)
            del buffers, view
            gc.collect()
            others = [FixedBuffers(1, 4096) for _ in range(4)]  # would be mapped where the first were
            for other in others:
                with await other.lend() as view:
                    view[:] = b"z" * 4096
            hanging.answers.set()
            assert await reading == len(CONTENT)
            for other in others:
                with await other.lend() as view:
                    assert bytes(view) == b"z" * 4096

    until_answered(loop, hanging, main)


def test_a_buffer_lent_again_is_not_written_by_the_previous_transfer(loop: Any, path: Path) -> None:
    async def main() -> None:
        buffers = FixedBuffers(1, 65536)
        async with uringloop.open_file(path, "rb", direct=True) as file:
            for after in range(40):
                reading = asyncio.ensure_future(use(buffers, file))
                await turns(after % 6)
                reading.cancel()
                with await buffers.lend() as view:
                    view[:] = b"m" * 65536
                    await turns(5)
                    assert bytes(view) == b"m" * 65536
                await asyncio.gather(reading, return_exceptions=True)

    async def use(buffers: FixedBuffers, file: Any) -> None:
        with await buffers.lend() as view:
            assert await file.pread(view, 65536) == 65536
            assert bytes(view) == CONTENTS[65536:131072]

    loop.run_until_complete(main())
