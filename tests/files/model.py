"""The same operations on a file of ours and on io's: results, exceptions, positions and contents must be
the same."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import uringloop

# Pages and buffers end at such sizes; data around them is where mistakes live.
EDGES = [0, 1, 2, 4095, 4096, 4097, 8191, 8192, 8193, 16384, 20000, 70000]

sizes = st.one_of(st.sampled_from(EDGES), st.integers(0, 300))
offsets = st.one_of(st.sampled_from(EDGES), st.integers(-5, 40000))
blobs = st.one_of(
    st.binary(max_size=100),
    st.builds(lambda n, c: c * n, st.sampled_from(EDGES), st.sampled_from([b"x", b"ab\n"])),
)

reading = [
    st.tuples(st.just("read"), st.one_of(st.just(-1), sizes)),
    st.tuples(st.just("readline"), st.one_of(st.just(-1), st.integers(1, 50))),
    st.tuples(st.just("readlines"), st.sampled_from([-1, 1, 100])),
    st.tuples(st.just("readinto"), sizes),
    st.tuples(st.just("next")),
]
writing = [
    st.tuples(st.just("write"), blobs),
    st.tuples(st.just("writelines"), st.lists(blobs, max_size=3)),
    st.tuples(st.just("truncate"), st.one_of(st.none(), st.integers(-1, 30000))),
    st.tuples(st.just("flush")),
]
moving = [
    st.tuples(st.just("seek"), offsets, st.just(0)),
    st.tuples(st.just("seek"), st.integers(-9000, 9000), st.sampled_from([0, 1, 2])),
    st.tuples(st.just("tell")),
]
steps = st.lists(st.one_of(*reading, *writing, *moving), max_size=12)


def kind_of(error: BaseException) -> Any:
    """What must be the same of an exception."""
    if isinstance(error, OSError) and not isinstance(error, io.UnsupportedOperation):
        return type(error), error.errno, error.filename
    return type(error)


def step_io(file: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    try:
        if name == "readinto":
            target = bytearray(arguments[0])
            return file.readinto(target), bytes(target)
        if name == "next":
            return next(file)
        return getattr(file, name)(*arguments)
    except StopIteration:
        return StopIteration
    except Exception as error:
        return kind_of(error)


async def step_ours(file: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    try:
        if name == "readinto":
            target = bytearray(arguments[0])
            return await file.readinto(target), bytes(target)
        if name == "next":
            return await anext(file)
        return await getattr(file, name)(*arguments)
    except StopAsyncIteration:
        return StopIteration
    except Exception as error:
        return kind_of(error)


async def compare(
    folder: Path, content: bytes, mode: str, todo: list[tuple[Any, ...]], **options: Any
) -> None:
    """Do it all on a file of each, from the same content."""
    ours, theirs = folder / "ours", folder / "theirs"
    for path in (ours, theirs):
        path.write_bytes(content)
        if "x" in mode:
            os.unlink(path)
    with io.open(theirs, mode, **options) as model:  # noqa: UP020
        async with uringloop.open_file(ours, mode, **options) as file:
            assert (file.readable(), file.writable(), file.seekable()) == (
                model.readable(),
                model.writable(),
                model.seekable(),
            )
            if "b" in mode:
                todo = [*todo, ("tell",)]
            for name, *arguments in todo:
                if "a" in mode:
                    # Where the end is shows when it is written to, and how much is buffered is nobody's
                    # business.
                    assert await step_ours(file, "flush", ()) == step_io(model, "flush", ())
                expected = step_io(model, name, tuple(arguments))
                got = await step_ours(file, name, tuple(arguments))
                assert got == expected, (name, arguments)
                if name == "seek" and not isinstance(expected, int):
                    step_io(model, "seek", (0,))  # after a seek that failed, io's next may say -1 ...
                    theirs_now = step_io(model, "seek", (0,))
                    ours_now = await step_ours(file, "seek", (0,))
                    if theirs_now == -1:
                        assert ours_now == 0
                        break  # ... or every one after it
                    assert ours_now == theirs_now
    assert ours.read_bytes() == theirs.read_bytes()
    assert file.closed and model.closed
