"""Guarded: a value that one function at a time works on, in the order in which they came. Each runs as a task
of its own: whether its caller goes on awaiting it or not, the value is free again when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from uringloop.sync.lock import Lock

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class _Hold:
    """The lock, held until `release`, or until nobody knows this any more: the task it was given to may be
    cancelled, or its loop closed, before it has run at all."""

    def __init__(self, lock: Lock) -> None:
        self._lock: Lock | None = lock

    def release(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    __del__ = release


class Guarded(Generic[T]):
    """A value for tasks of any loops and for plain threads, reached through run() and run_sync() only."""

    def __init__(self, value: T) -> None:
        self._value = value
        self._lock = Lock()
        self._runs = 0

    async def run(
        self, function: Callable[Concatenate[T, P], Awaitable[R]], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """What `await function(value, ...)` gave, run alone. A caller that is cancelled before its turn
        leaves the line; one that is cancelled later leaves the function to run to its end."""
        await self._lock.acquire()
        hold = _Hold(self._lock)
        task = asyncio.get_running_loop().create_task(self._run(hold, function, args, kwargs))
        del hold  # only the task's
        return await asyncio.shield(task)

    async def _run(
        self, hold: _Hold, function: Callable[..., Awaitable[R]], args: Any, kwargs: dict[str, Any]
    ) -> R:
        try:
            self._runs += 1  # the lock is held
            return await function(self._value, *args, **kwargs)
        finally:
            hold.release()

    def run_sync(self, function: Callable[Concatenate[T, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """From a plain thread: what `function(value, ...)` returned, run alone, in this thread."""
        with self._lock:
            self._runs += 1
            return function(self._value, *args, **kwargs)

    def statistics(self) -> dict[str, int]:
        """{runs: functions begun; the rest as of its lock}."""
        return {"runs": self._runs, **self._lock.statistics()}

    def __repr__(self) -> str:
        state = "busy" if self._lock.locked() else "free"
        return f"<{type(self).__name__} {state} waiting={self._lock.waiting} value={self._value!r}>"
