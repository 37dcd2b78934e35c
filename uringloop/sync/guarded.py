"""Guarded: a value that one function at a time works on, in the order of the calls. Each function runs as a task
of its own: when it ends, the value is free again, even if its caller no longer awaits it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from uringloop.sync.described import described
from uringloop.sync.lock import Lock

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class _Hold:
    """Holds the lock until `release`, or until the last reference to this object is gone: the task that has it may be
    cancelled, or its loop closed, before the task has run at all."""

    def __init__(self, lock: Lock) -> None:
        self._lock: Lock | None = lock

    def release(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    __del__ = release


class Guarded(Generic[T]):
    """A value for tasks of any loops and for plain threads, reached through run() and run_sync() only."""

    def __init__(self, value: T, *, name: str | None = None) -> None:
        self._value = value
        self._lock = Lock(name=name)
        self._runs = 0

    async def run(
        self, function: Callable[Concatenate[T, P], Awaitable[R]], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Await `function(value, ...)` while no other function works on the value; return its result. If the caller is
        cancelled before the function starts, the function never runs; if later, the function runs to its end."""
        await self._lock.acquire()
        hold = _Hold(self._lock)
        task = asyncio.get_running_loop().create_task(self._run(hold, function, args, kwargs))
        del hold  # now only the task refers to it
        return await asyncio.shield(task)

    async def _run(
        self, hold: _Hold, function: Callable[..., Awaitable[R]], args: Any, kwargs: dict[str, Any]
    ) -> R:
        try:
            self._runs += 1  # under the lock
            return await function(self._value, *args, **kwargs)
        finally:
            hold.release()

    def run_sync(self, function: Callable[Concatenate[T, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call `function(value, ...)` in this plain thread, while no other function works on the value."""
        with self._lock:
            self._runs += 1
            return function(self._value, *args, **kwargs)

    def statistics(self) -> dict[str, Any]:
        """{runs: functions started; and the lock's statistics}."""
        return {"runs": self._runs, **self._lock.statistics()}

    def __repr__(self) -> str:
        state = "busy" if self._lock.locked() else "free"
        return described(self._lock, self, state)[:-1] + f" value={self._value!r}>"
