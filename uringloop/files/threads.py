"""Calls for which io_uring has no operation, run in the loop's worker threads for files. A waiting task may be
cancelled at any moment: a call that has begun goes on, on duplicated descriptors, and `lost` disposes of its result."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import TYPE_CHECKING, Any

from uringloop._core.engine.workers import Workers
from uringloop.files.loops import running_loop

if TYPE_CHECKING:
    from uringloop.loop import EventLoop


async def in_thread(
    function: Callable[..., Any],
    *args: Any,
    fds: Sequence[int] = (),
    lost: Callable[[Any], object] | None = None,
    executor: Executor | None = None,
) -> Any:
    """Run function(*fds, *args) in a worker thread of the loop, or of `executor`. The function gets duplicates of the
    descriptors: the originals may be closed, and their numbers reused, while it still runs. If the waiting task is
    cancelled, `lost` gets the function's result."""
    loop = running_loop()
    workers = executor or workers_of(loop)
    duplicates = Duplicates(fds)
    try:
        future = workers.submit(duplicates.used, function, *args)
    except BaseException:
        duplicates.close()
        raise
    future.add_done_callback(partial(duplicates.unused, workers))
    try:
        return await asyncio.wrap_future(future, loop=loop)
    except BaseException:
        if lost is not None:
            future.add_done_callback(partial(take_back, lost))
        raise


async def on_path(
    function: Callable[..., Any], path: Any, *args: Any, dir_fd: int | None = None, **options: Any
) -> Any:
    """Run a function of `os` on a path in a thread; the path may be a descriptor, or relative to `dir_fd`."""
    if isinstance(path, int):
        return await in_thread(partial(function, **options), *args, fds=(path,))
    if dir_fd is None:
        return await in_thread(partial(function, **options), path, *args)

    def in_folder(folder: int) -> Any:
        return function(path, *args, dir_fd=folder, **options)

    return await in_thread(in_folder, fds=(dir_fd,))


def take_back(lost: Callable[[Any], object], future: Future[Any]) -> None:
    if not future.cancelled() and future.exception() is None:
        lost(future.result())


class Duplicates:
    """Duplicated descriptors for a call in a worker; closed when the call has ended, or will never begin."""

    def __init__(self, fds: Sequence[int]) -> None:
        self._fds: list[int] = []  # the descriptors that the call gets
        self._own: list[int] = []  # the duplicates among them, to be closed
        for fd in fds:
            try:
                self._own.append(os.dup(fd))
            except OSError:
                self._fds.append(fd)  # the call itself will raise the error
            else:
                self._fds.append(self._own[-1])

    def used(self, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*self._fds, *args)
        finally:
            self.close()

    def unused(self, workers: Executor, future: Future[Any]) -> None:
        if future.cancelled() and self._own:
            try:
                workers.submit(self.close)  # in a worker, because closing may wait for a server that hangs
            except RuntimeError:
                self.close()  # the workers have ended

    def close(self) -> None:
        own, self._own = self._own, []
        for fd in own:
            os.close(fd)


def workers_of(loop: EventLoop) -> Workers:
    """The loop's worker threads for files, made on first use."""
    workers: Workers | None = loop._file_workers
    if workers is None or workers.pid != os.getpid():
        workers = loop._file_workers = Workers("uringloop-files")
        loop._at_close.append(partial(workers.shutdown, cancel_futures=True))
    return workers
