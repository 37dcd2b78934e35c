"""Condition: wait, with a lock let go meanwhile, until somebody notifies. Owns the line of who waits. A
notification is never lost: one that its waiter can not use any more goes on to the next."""

from __future__ import annotations

import sys
import time
from asyncio import CancelledError
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from uringloop._core.patience import seconds
from uringloop._core.wait import Entry, Wait
from uringloop._core.waitlist import Waiter
from uringloop.sync.line import Line
from uringloop.sync.lock import Lock

T = TypeVar("T")


class Condition:
    """asyncio.Condition for tasks of any loop, and with `with condition:` for plain threads as well."""

    def __init__(self, lock: Lock | None = None) -> None:
        self._lock = Lock() if lock is None else lock
        self._line = Line()

    def acquire(self) -> Wait[bool]:
        return self._lock.acquire()

    def acquire_nowait(self) -> bool:
        return self._lock.acquire_nowait()

    def acquire_sync(self, timeout: float | None = None) -> bool:
        return self._lock.acquire_sync(timeout)

    def release(self) -> None:
        self._lock.release()

    def locked(self) -> bool:
        return self._lock.locked()

    async def wait(self) -> bool:
        """Let the lock go, wait for a notification, and hold the lock again whatever happened; gives True."""
        place = self._leave(self._line.stand)
        try:
            await place  # a notification that a cancelled waiter had is passed on there
        except GeneratorExit:
            self._forgo()
            raise
        except BaseException:
            await self._acquire_again()
            raise
        try:
            await self._acquire_again()
        except BaseException:
            # It was notified and will not act on it: somebody else may.
            self._line.wake(1)
            raise
        return True

    async def _acquire_again(self) -> None:
        cancelled = None
        while True:
            try:
                await self._lock.acquire()
                break
            except CancelledError as error:
                cancelled = error
            except BaseException:
                self._forgo()
                raise
        if cancelled is not None:
            try:
                raise cancelled
            finally:
                cancelled = None

    def _forgo(self) -> None:
        """A task that is destroyed with its loop can not wait for the lock, which another may hold; and what is
        around `wait` is going to release it all the same."""
        if isinstance(self._lock, Lock):
            self._lock.owe()

    async def wait_for(self, predicate: Callable[[], T]) -> T:
        """Wait until the predicate, called with the lock held, is true; gives what it returned."""
        result = predicate()
        while not result:
            await self.wait()
            result = predicate()
        return result

    def wait_sync(self, timeout: float | None = None) -> bool:
        """From a plain thread: True once notified, False after `timeout` seconds; the lock is held again."""
        timeout, acquire = seconds(timeout), self._lock.acquire_sync
        place = self._leave(self._line.stand_sync)
        try:
            notified = self._line.sleep_in(place, timeout)
        except BaseException:  # a signal handler's
            _insist(acquire)
            raise
        try:
            _insist(acquire)
        except BaseException:
            if notified:
                self._line.wake(1)  # as in `wait`
            raise
        return notified

    def wait_for_sync(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        """From a plain thread: what the predicate returned last, after `timeout` seconds at the latest."""
        timeout = seconds(timeout)
        deadline = None if timeout is None else time.monotonic() + timeout
        result = predicate()
        while not result:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                break
            self.wait_sync(left)
            result = predicate()
        return result

    def _leave(self, stand: Callable[[], Waiter]) -> Waiter:
        """A place in the line, taken before the lock is free: no notification falls in between."""
        if not self._lock.locked():
            raise RuntimeError("cannot wait on un-acquired lock")
        place = stand()
        self._lock.release()
        return place

    def notify(self, n: int = 1) -> None:
        """Wake at most n who wait, first come first; each goes on when it holds the lock again."""
        if not self._lock.locked():
            raise RuntimeError("cannot notify on un-acquired lock")
        self._line.wake(n)

    def notify_all(self) -> None:
        self.notify(sys.maxsize)

    def statistics(self) -> dict[str, object]:
        """{waiting: now; waits, grants, cancels, passes: since it was made; lock: the same of the lock}."""
        return {**self._line.statistics(), "lock": self._lock.statistics()}

    def __aenter__(self) -> Entry[None]:
        return self._lock.__aenter__()

    def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> Entry[None]:
        return self._lock.__aexit__(kind, error, traceback)

    def __enter__(self) -> None:
        self._lock.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()

    def __repr__(self) -> str:
        state = "locked" if self.locked() else "unlocked"
        return f"<{type(self).__name__} {state} waiting={self._line.waiting}>"


def _insist(acquire: Callable[[], object]) -> None:
    """What a signal handler raises waits for the lock as well: who is told of it is about to release the lock."""
    interrupted = None
    while True:
        try:
            acquire()
            break
        except BaseException as error:
            interrupted = error
    if interrupted is not None:
        try:
            raise interrupted
        finally:
            interrupted = None
