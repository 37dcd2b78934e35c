"""What aiofiles' files have in common: the wrapper of one of ours, and of one that goes through an
executor."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager
from functools import partial, wraps
from types import TracebackType
from typing import Any


def wrap(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """A coroutine function that calls it in an executor."""

    @wraps(function)
    async def run(*args: Any, loop: Any = None, executor: Any = None, **kwargs: Any) -> Any:
        loop = loop or asyncio.get_running_loop()
        return await loop.run_in_executor(executor, partial(function, *args, **kwargs))

    return run


def ours(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """One of `fs`, with aiofiles' two further arguments, which it has no use for."""

    @wraps(function)
    async def run(*args: Any, loop: Any = None, executor: Any = None, **kwargs: Any) -> Any:
        return await function(*args, **kwargs)

    return run


class AsyncBase:
    """A file whose methods are awaited; `_file` is what it is made of."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __aiter__(self) -> AsyncBase:
        return self

    async def __anext__(self) -> Any:
        line = await self.readline()
        if line:
            return line
        raise StopAsyncIteration

    def __repr__(self) -> str:
        return f"{super().__repr__()} wrapping {self._file!r}"

    def __getattr__(self, name: str) -> Any:
        if name == "_file":
            raise AttributeError(name)
        return getattr(self._file, name)


class RingFile(AsyncBase):
    """One of ours. What io has as plain methods, aiofiles has as coroutines."""

    _detached = False
    _at_close: Callable[[], Awaitable[Any]] | None = None

    async def readable(self) -> bool:
        return self._open().readable()  # type: ignore[no-any-return]

    async def writable(self) -> bool:
        return self._open().writable()  # type: ignore[no-any-return]

    async def seekable(self) -> bool:
        return self._open().seekable()  # type: ignore[no-any-return]

    async def isatty(self) -> bool:
        return self._open().isatty()  # type: ignore[no-any-return]

    def __anext__(self) -> Any:
        return self._file.__anext__()

    def read(self, size: Any = -1, /) -> Any:
        return self._file.read(size)

    def write(self, data: Any, /) -> Any:
        return self._file.write(data)

    def readline(self, size: Any = -1, /) -> Any:
        return self._file.readline(size)

    async def close(self) -> None:
        if self._detached:
            raise ValueError("underlying buffer has been detached")
        await self._file.close()
        done, self._at_close = self._at_close, None
        if done is not None:
            await done()

    def detach(self) -> Any:
        """What io's method of that name returns: the next layer, which is a blocking one."""
        text = hasattr(self._file, "buffer")
        binary = self._file.buffer if text else self._file
        mode, size = binary.mode, -1 if text else 0
        self._detached = True
        return open(binary.release(), mode, size)

    def _open(self) -> Any:
        if self._file.closed:
            raise ValueError("I/O operation on closed file.")
        return self._file


class ThreadFile(AsyncBase):
    """The wrapper of a file object that is not uringloop's. It calls the object's methods in an executor. If `find` is
    given, it looks the object up for each use."""

    def __init__(
        self, file: Any, find: Callable[[], Any] | None = None, *, loop: Any = None, executor: Any = None
    ) -> None:
        self._find = find
        self._given_loop = loop
        self._executor = executor
        super().__init__(file)

    @property
    def _file(self) -> Any:
        return self._found if self._find is None else self._find()

    @_file.setter
    def _file(self, value: Any) -> None:
        self._found = value


def _delegated(name: str) -> Callable[..., Awaitable[Any]]:
    async def method(self: ThreadFile, *args: Any) -> Any:
        loop = self._given_loop or asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, getattr(self._file, name), *args)

    method.__name__ = name
    return method


for (
    _name
) in """close flush isatty read read1 readable readall readinto readline readlines rollover seek seekable tell
        truncate writable write writelines peek cleanup""".split():
    setattr(ThreadFile, _name, _delegated(_name))


class AiofilesContextManager(Awaitable[Any], AbstractAsyncContextManager[Any]):
    """Awaited, or entered with `async with`."""

    __slots__ = ("_coro", "_obj")

    def __init__(self, coro: Any) -> None:
        self._coro = coro
        self._obj: Any = None

    def __await__(self) -> Generator[Any, Any, Any]:
        if self._obj is None:
            self._obj = yield from self._coro.__await__()
        return self._obj

    async def __aenter__(self) -> Any:
        return await self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        file, self._obj = self._obj, None
        await file.close()
