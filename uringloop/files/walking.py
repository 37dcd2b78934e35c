"""Listing folders: listdir, scandir, walk. io_uring has no operation that lists, so a worker thread does it."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Callable
from itertools import islice
from types import TracebackType
from typing import Any

from uringloop.files.paths import Path
from uringloop.files.threads import in_thread, on_path

BATCH = 256  # entries per call in a worker


async def listdir(path: Path | int | None = ".") -> list[Any]:
    return await on_path(os.listdir, path)  # type: ignore[no-any-return]


class Listing:
    """The entries of a folder, which a worker reads. Only one thread at a time may use the iterator: a thread that
    wants to close it while it's in use leaves the closing to the thread that uses it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._entries: Any = None
        self._untaken: list[
            os.DirEntry[Any]
        ] = []  # read, but not taken yet: the call that read them may have been cancelled
        self._closed = False

    def begin(self, path: Path | int | None) -> None:
        with self._guard:
            if not self._closed:
                self._entries = os.scandir(path)
        self._close_if_told()

    def more(self) -> list[os.DirEntry[Any]]:
        """Read the next entries, unless the ones read before were not taken yet; return those in that case."""
        with self._guard:
            if not self._untaken and not self._closed:
                self._untaken = list(islice(self._entries, BATCH))
            batch = self._untaken
        self._close_if_told()
        return batch

    def take(self, batch: list[os.DirEntry[Any]]) -> bool:
        """Take the batch, in the loop's thread. Return False if another task has taken it."""
        if self._untaken is not batch:
            return False
        self._untaken = []
        return True

    def close(self) -> None:
        self._closed = True
        self._close_if_told()

    def _close_if_told(self) -> None:
        while self._closed and self._entries is not None and self._guard.acquire(blocking=False):
            try:
                if self._entries is not None:
                    self._entries.close()
                    self._entries = None
            finally:
                self._guard.release()


class Scan:
    """What scandir returns: iterate over it with `async for`; use `async with` to close it early."""

    def __init__(self, path: Path | int | None) -> None:
        self._path = path
        self._listing: Listing | None = None
        self._batch: list[os.DirEntry[Any]] = []
        self._closed = False

    async def __aenter__(self) -> Scan:
        if self._listing is None and not self._closed:
            listing = Listing()
            try:
                await on_path(listing.begin, self._path)
            except BaseException:
                listing.close()
                raise
            self._listing = listing
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __aiter__(self) -> Scan:
        return self

    async def __anext__(self) -> os.DirEntry[Any]:
        while not self._batch:
            await self.__aenter__()
            if self._closed or self._listing is None:
                raise StopAsyncIteration
            batch = await in_thread(self._listing.more)
            if self._batch or (batch and not self._listing.take(batch)):
                continue
            if not batch:
                self.close()
                raise StopAsyncIteration
            self._batch = batch[::-1]
        return self._batch.pop()

    def close(self) -> None:
        self._closed = True
        self._batch = []
        if self._listing is not None:
            self._listing.close()


def scandir(path: Path | int | None = ".") -> Scan:
    """List a folder: `async for entry in scandir(path)`. The entries are os.DirEntry, whose stat() may block."""
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
    """Like os.walk, as an async iterator; a worker thread lists each folder."""
    top = os.fspath(top)
    try:
        folders, others, into = await in_thread(_list, top, followlinks)
    except OSError as error:
        if onerror is not None:
            onerror(error)
        return
    if topdown:
        yield top, folders, others
        # The caller may have removed folders from the list, or added some.
        into = [
            name
            for name in folders
            if followlinks or not await in_thread(os.path.islink, os.path.join(top, name))
        ]
    for name in into:
        async for found in walk(os.path.join(top, name), topdown, onerror, followlinks):
            yield found
    if not topdown:
        yield top, folders, others
