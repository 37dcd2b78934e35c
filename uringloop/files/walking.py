"""Folders and what is in them: listdir, scandir, walk. The ring has no operation that lists, so an executor
does."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from itertools import islice
from types import TracebackType
from typing import Any

from uringloop.files.loops import running_loop
from uringloop.files.paths import Path

BATCH = 256  # entries a hop to the executor


async def listdir(path: Path | int | None = ".") -> list[Any]:
    return await running_loop().run_in_executor(None, os.listdir, path)


class Scan:
    """What scandir returns: iterated with `async for`; `async with` ends it early."""

    def __init__(self, path: Path | int | None) -> None:
        self._path = path
        self._entries: Any = None
        self._batch: list[os.DirEntry[Any]] = []
        self._closed = False

    async def __aenter__(self) -> Scan:
        if self._entries is None and not self._closed:
            self._entries = await running_loop().run_in_executor(None, os.scandir, self._path)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __aiter__(self) -> Scan:
        return self

    async def __anext__(self) -> os.DirEntry[Any]:
        if not self._batch:
            await self.__aenter__()
            if self._closed:
                raise StopAsyncIteration
            batch = await running_loop().run_in_executor(None, lambda: list(islice(self._entries, BATCH)))
            if not batch:
                self.close()
                raise StopAsyncIteration
            self._batch = batch[::-1]
        return self._batch.pop()

    def close(self) -> None:
        self._closed = True
        self._batch = []
        if self._entries is not None:
            self._entries.close()
            self._entries = None


def scandir(path: Path | int | None = ".") -> Scan:
    """`async for entry in scandir(path)`; the entries are os.DirEntry, whose stat() may block."""
    return Scan(path)


def _list(top: Any, followlinks: bool) -> tuple[list[Any], list[Any], list[Any]]:
    """Names of folders, of the rest, and the paths of the folders to go into."""
    folders: list[Any] = []
    others: list[Any] = []
    into: list[Any] = []
    with os.scandir(top) as entries:
        for entry in entries:
            try:
                is_folder = entry.is_dir()
            except OSError:
                is_folder = False
            (folders if is_folder else others).append(entry.name)
            if is_folder and (followlinks or not entry.is_symlink()):
                into.append(entry.name)
    return folders, others, into


async def walk(
    top: Path,
    topdown: bool = True,
    onerror: Callable[[OSError], object] | None = None,
    followlinks: bool = False,
) -> AsyncIterator[tuple[Any, list[Any], list[Any]]]:
    """As os.walk, one hop to an executor a folder."""
    top = os.fspath(top)
    try:
        folders, others, into = await running_loop().run_in_executor(None, _list, top, followlinks)
    except OSError as error:
        if onerror is not None:
            onerror(error)
        return
    if topdown:
        yield top, folders, others
        # The caller may have taken some out, or put others in.
        loop = running_loop()
        into = [
            name
            for name in folders
            if followlinks or not await loop.run_in_executor(None, os.path.islink, os.path.join(top, name))
        ]
    for name in into:
        async for found in walk(os.path.join(top, name), topdown, onerror, followlinks):
            yield found
    if not topdown:
        yield top, folders, others
