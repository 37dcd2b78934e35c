"""aiofiles.tempfile: made and deleted by the standard library in an executor, read and written as files of
ours."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from types import TracebackType
from typing import Any

from uringloop.aiofiles_compat.base import AiofilesContextManager, RingFile, ThreadFile
from uringloop.files import open_file
from uringloop.files.threads import in_thread

__all__ = ["NamedTemporaryFile", "SpooledTemporaryFile", "TemporaryDirectory", "TemporaryFile"]


class _NamedFile(RingFile):
    """Also has the name, and what decides when it is deleted."""

    _named: Any

    @property
    def name(self) -> Any:
        return self._named.name

    @property
    def delete(self) -> Any:
        return self._named._closer.delete if hasattr(self._named, "_closer") else self._named.delete


class _Context(AiofilesContextManager):
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        file, self._obj = self._obj, None
        await file.close()
        if isinstance(file, _NamedFile):
            await _in_executor(
                None, file._named.__exit__, None, None, None
            )  # the end of delete_on_close=False


class _Directory(AiofilesContextManager):
    """Entered, it is the path."""

    async def __aenter__(self) -> Any:
        return (await self)._file.name

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        directory, self._obj = self._obj, None
        await directory.cleanup()


async def _in_executor(executor: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    return await in_thread(partial(function, *args, **kwargs), lost=_given_back, executor=executor)


def _given_back(made: Any) -> None:
    """Close what the thread has made, because the task that awaited it was cancelled."""
    if isinstance(made, tempfile.TemporaryDirectory):
        made.cleanup()
    elif made is not None:
        made.close()


async def _temporary(
    make: Any, mode: str, buffering: int, encoding: Any, newline: Any, executor: Any, **options: Any
) -> Any:
    made = await _in_executor(executor, make, mode="w+b", buffering=0, **options)
    # Of our own, so that each can be closed without the other: deleting is the other's business.
    own = os.dup(made.fileno())
    try:
        opened = await open_file(own, mode.replace("x", "w"), buffering, encoding, None, newline)
    except BaseException:
        os.close(own)
        made.close()
        raise
    named = make is tempfile.NamedTemporaryFile
    file = _NamedFile(opened) if named else RingFile(opened)
    if isinstance(file, _NamedFile):
        file._named = made
    file._at_close = partial(_in_executor, executor, made.close)
    return file


def NamedTemporaryFile(
    mode: str = "w+b",
    buffering: int = -1,
    encoding: str | None = None,
    newline: str | None = None,
    suffix: str | None = None,
    prefix: str | None = None,
    dir: Any = None,
    delete: bool = True,
    delete_on_close: bool = True,
    loop: Any = None,
    executor: Any = None,
) -> AiofilesContextManager:
    options: dict[str, Any] = {"suffix": suffix, "prefix": prefix, "dir": dir, "delete": delete}
    if not delete_on_close:
        options["delete_on_close"] = False  # Python 3.12 has it
    return _Context(
        _temporary(tempfile.NamedTemporaryFile, mode, buffering, encoding, newline, executor, **options)
    )


def TemporaryFile(
    mode: str = "w+b",
    buffering: int = -1,
    encoding: str | None = None,
    newline: str | None = None,
    suffix: str | None = None,
    prefix: str | None = None,
    dir: Any = None,
    loop: Any = None,
    executor: Any = None,
) -> AiofilesContextManager:
    return _Context(
        _temporary(
            tempfile.TemporaryFile,
            mode,
            buffering,
            encoding,
            newline,
            executor,
            suffix=suffix,
            prefix=prefix,
            dir=dir,
        )
    )


def SpooledTemporaryFile(
    max_size: int = 0,
    mode: str = "w+b",
    buffering: int = -1,
    encoding: str | None = None,
    newline: str | None = None,
    suffix: str | None = None,
    prefix: str | None = None,
    dir: Any = None,
    loop: Any = None,
    executor: Any = None,
) -> AiofilesContextManager:
    async def make() -> ThreadFile:
        made = await _in_executor(
            executor,
            tempfile.SpooledTemporaryFile,
            max_size,
            mode,
            buffering,
            encoding,
            newline,
            suffix,
            prefix,
            dir,
        )
        return ThreadFile(made, loop=loop, executor=executor)

    return _Context(make())


def TemporaryDirectory(
    suffix: str | None = None,
    prefix: str | None = None,
    dir: Any = None,
    loop: Any = None,
    executor: Any = None,
) -> AiofilesContextManager:
    async def make() -> ThreadFile:
        made = await _in_executor(executor, tempfile.TemporaryDirectory, suffix, prefix, dir)
        return ThreadFile(made, loop=loop, executor=executor)

    return _Directory(make())
