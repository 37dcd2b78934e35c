"""What the methods of files return: a coroutine in every respect, and one that lets others run."""

from __future__ import annotations

import asyncio
import collections.abc
import inspect
from pathlib import Path
from typing import Any

import pytest

import uringloop


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"".join(b"%d\n" % i for i in range(5000)))
    return path


def test_a_call_is_a_coroutine(loop: Any, path: Path) -> None:
    async def main() -> None:
        async with uringloop.open_file(path, "rb") as file:
            call = file.read(1)
            assert isinstance(call, collections.abc.Coroutine)
            assert inspect.isawaitable(call)
            assert asyncio.iscoroutine(call)
            assert await call == b"0"
            with pytest.raises(RuntimeError, match="cannot reuse"):
                await call
            assert await asyncio.create_task(file.read(1)) == b"\n"
            assert await asyncio.wait_for(file.read(1), 10) == b"1"
            assert await asyncio.gather(file.read(1), file.read(1)) == [b"\n", b"2"]
            assert "Call" in repr(asyncio.ensure_future(file.tell()))

    loop.run_until_complete(main())


def test_a_call_does_nothing_before_it_is_awaited(loop: Any, path: Path) -> None:
    async def main() -> None:
        async with uringloop.open_file(path, "rb") as file:
            call = file.read(10)
            assert await file.tell() == 0
            call.close()
            with pytest.raises(RuntimeError):
                await call
            assert await file.read(2) == b"0\n"
            call = file.read()
            with pytest.raises(KeyError):
                call.throw(KeyError("x"))
            assert await file.tell() == 2

    loop.run_until_complete(main())


CALLS: dict[str, tuple[Any, ...]] = {
    "read": (),
    "readline": (),
    "__anext__": (),
    "readlines": (),
    "read1": (),
    "readinto": (bytearray(1),),
    "peek": (),
    "write": (b"x",),
    "writelines": ([b"x"],),
    "seek": (0,),
    "tell": (),
    "truncate": (0,),
    "flush": (),
    "fsync": (),
    "fdatasync": (),
    "allocate": (0, 1),
    "advise": ("sequential",),
    "pread": (1, 0),
    "pwrite": (b"x", 0),
    "close": (),
}


@pytest.mark.parametrize("method", CALLS)
def test_a_warning_of_a_call_never_awaited_names_method_file_and_line(
    loop: Any, path: Path, method: str
) -> None:
    async def main() -> None:
        async with uringloop.open_file(path, "r+b") as file:
            with pytest.warns(RuntimeWarning) as warned:
                getattr(file, method)(*CALLS[method])
            (found,) = warned
            assert str(found.message) == f"coroutine 'ByteFile.{method}' of {str(path)!r} was never awaited"
            assert (found.filename, found.lineno) == (__file__, main.__code__.co_firstlineno + 3)
        async with uringloop.open_file(path) as text:
            with pytest.warns(RuntimeWarning, match="'TextFile.readline' of "):
                text.readline()

    loop.run_until_complete(main())


@pytest.mark.parametrize("result", [(1, 2), StopIteration(3), KeyError("x")])
def test_writelines_raises_any_error_of_the_iterator(loop: Any, tmp_path: Path, result: Any) -> None:
    # None of our calls returns such a value, but a coroutine in one may raise it.
    async def main() -> None:
        class Lines:
            def __iter__(self) -> Any:
                yield b"x"
                raise KeyError(result)

        async with uringloop.open_file(tmp_path / "f", "wb") as file:
            with pytest.raises(KeyError):
                await file.writelines(Lines())
            assert await file.tell() == 1

    loop.run_until_complete(main())


@pytest.mark.parametrize("kind", ["read", "line", "text", "write", "pread", "seek"])
def test_calls_that_finish_at_once_still_let_other_tasks_run(loop: Any, path: Path, kind: str) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    async def main() -> None:
        ticking = asyncio.ensure_future(tick())
        mode = {"text": "r", "write": "wb"}.get(kind, "rb")
        async with uringloop.open_file(path, mode) as file:
            await file.read(1) if kind != "write" else await file.write(b"x")
            before = ticks
            for i in range(1000):
                if kind == "write":
                    await file.write(b"x")
                elif kind in ("line", "text"):
                    assert await file.readline()
                elif kind == "pread":
                    await file.pread(10, i)
                elif kind == "seek":
                    await file.seek(i)
                else:
                    await file.read(3)
            assert ticks - before >= 1000 // 64 - 2
        ticking.cancel()

    loop.run_until_complete(main())


def test_many_files_share_the_time_of_a_turn(loop: Any, path: Path) -> None:
    async def main() -> None:
        steps: list[int] = []
        longest = 0
        turns = 0

        async def tick() -> None:
            nonlocal longest, turns
            while True:
                turns += 1
                longest = max(longest, len(steps))
                steps.clear()
                await asyncio.sleep(0)

        async def reader() -> None:
            async with uringloop.open_file(path, "rb") as file:
                for _ in range(400):
                    await file.read(2)
                    steps.append(1)

        ticking = asyncio.ensure_future(tick())
        await asyncio.gather(*(reader() for _ in range(50)))
        ticking.cancel()
        assert longest < 512 + 2 * 50 + 64  # the loop's share, and one step of each file beyond it

    loop.run_until_complete(main())


def test_files_refuse_other_event_loops(path: Path, loop: Any) -> None:
    async def opening() -> None:
        await uringloop.open_file(path)

    async def using(file: Any) -> None:
        await file.read()

    with pytest.raises(RuntimeError, match=r"uringloop's event loop only.*SelectorEventLoop"):
        asyncio.run(opening())
    file = loop.run_until_complete(uringloop.open_file(path).__aenter__())
    with pytest.raises(RuntimeError, match="uringloop's event loop only"):
        asyncio.run(using(file))
    with pytest.raises(RuntimeError, match="no event loop is running"):
        file.read().send(None)
    loop.run_until_complete(file.close())


def test_a_file_can_be_used_on_a_second_loop(new_loop: Any, path: Path) -> None:
    first, second = new_loop(), new_loop()
    file = first.run_until_complete(uringloop.open_file(path, "rb").__aenter__())
    assert second.run_until_complete(file.read(2)) == b"0\n"
    first.close()
    assert second.run_until_complete(file.readline()) == b"1\n"
    second.run_until_complete(file.close())
