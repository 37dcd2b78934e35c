"""Work on files: with the loop's own files where it has any, else with what its users take.

On uringloop that is open_file, on uvloop ayafileio, on any other loop aiofiles; `library` chooses another.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.repeat import rate_of
from benchmarks.row import Skipped

OWN = {"uringloop": "uringloop", "uvloop": "ayafileio"}
Open = Callable[..., Any]


class AnyioFile:
    """anyio's open_file, entered as the others are."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    async def __aenter__(self) -> Any:
        self.file = await importlib.import_module("anyio").open_file(*self.arguments)
        return self.file

    async def __aexit__(self, *error: object) -> None:
        await self.file.aclose()


def opener(loop: asyncio.AbstractEventLoop, library: str) -> Open:
    """The `open` of a library, for `async with`."""
    room = type(loop).__module__.partition(".")[0]
    if library == "own":
        library = OWN.get(room, "aiofiles")
    if library == "uringloop" and room != "uringloop":
        raise Skipped("files of uringloop's loop only")
    try:
        module = importlib.import_module(library)
    except ImportError as error:
        raise Skipped(str(error)) from None
    if library == "anyio":
        return AnyioFile
    found: Open = module.open_file if library == "uringloop" else module.open
    return found


@contextmanager
def file_of(content: bytes) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        with open(path, "wb") as file:
            file.write(content)
        yield path


def seek_read(
    loop: asyncio.AbstractEventLoop, seconds: float, tasks: int = 1, library: str = "own"
) -> dict[str, float]:
    """Seek to a random place of a cached file and read 4 KB there; each task on a file object of its own."""
    open_file, blocks, each = opener(loop, library), 4096, 100
    places = [random.randrange(blocks) * 4096 for _ in range(each)]

    async def one(file: Any) -> None:
        for place in places:
            await file.seek(place)
            await file.read(4096)

    async def main(path: str) -> float:
        files = [await open_file(path, "rb").__aenter__() for _ in range(tasks)]

        async def batch() -> None:
            if tasks == 1:
                await one(files[0])
            else:
                await asyncio.gather(*map(one, files))

        try:
            return await rate_of(batch, each * tasks, seconds)
        finally:
            for file in files:
                await (file.aclose if library == "anyio" else file.close)()

    with file_of(os.urandom(blocks * 4096)) as path:
        return {"rate": loop.run_until_complete(main(path))}


def whole(loop: asyncio.AbstractEventLoop, seconds: float, library: str = "own") -> dict[str, float]:
    """Open a cached file, read its 1 MB, close it."""
    open_file = opener(loop, library)

    async def batch(path: str) -> None:
        for _ in range(10):
            async with open_file(path, "rb") as file:
                await file.read()

    with file_of(os.urandom(1 << 20)) as path:
        return {"rate": loop.run_until_complete(rate_of(lambda: batch(path), 10, seconds))}


def append(loop: asyncio.AbstractEventLoop, seconds: float, library: str = "own") -> dict[str, float]:
    """Append records of 1 KB, and close at the end of each thousand."""
    open_file, record, count = opener(loop, library), b"x" * 1024, 1000

    async def batch(path: str) -> None:
        async with open_file(path, "ab") as file:
            for _ in range(count):
                await file.write(record)
        os.truncate(path, 0)

    with file_of(b"") as path:
        return {"rate": loop.run_until_complete(rate_of(lambda: batch(path), count, seconds))}


def lines(loop: asyncio.AbstractEventLoop, seconds: float, library: str = "own") -> dict[str, float]:
    """`async for line` over a cached text file."""
    open_file, count = opener(loop, library), 2000
    text = "".join(f"line {i} of a text file, some sixty bytes of it as it were\n" for i in range(count))

    async def batch(path: str) -> None:
        async with open_file(path, "r") as file:
            async for _ in file:
                pass

    with file_of(text.encode()) as path:
        return {"rate": loop.run_until_complete(rate_of(lambda: batch(path), count, seconds))}
