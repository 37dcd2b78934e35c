"""Condition: releases its lock, waits for a notification, and acquires the lock again. Owns the line of waiters. No
notification is lost: if a waiter can no longer use one, the next waiter gets it."""

from __future__ import annotations

import sys
import time
from asyncio import CancelledError
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from uringloop._core.handoff.timeouts import optional_seconds
from uringloop._core.handoff.wait import Entry, Wait
from uringloop._core.handoff.waitlist import Waiter
from uringloop.sync.described import described
from uringloop.sync.lock import Lock
from uringloop.sync.lock_claims import Claim, LockClaims
from uringloop.sync.parking_lot import ParkingLot

T = TypeVar("T")


class Condition:
    """asyncio.Condition for tasks of any loop, and with `with condition:` for plain threads as well."""

    def __init__(self, lock: Lock | None = None, *, name: str | None = None) -> None:
        self._lock = Lock(name=name) if lock is None else lock
        self._line = ParkingLot(name=name)
        ours = isinstance(self._lock, Lock)
        self._claims = self._lock.share() if ours else LockClaims()
        self._release = self._lock.release_to_wait if ours else self._lock.release
        # A subclass of Lock may override acquire and release: then the Condition calls those.
        self._keeps_claims = ours and type(self._lock).acquire is Lock.acquire

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
        """Release the lock, wait for a notification, and acquire the lock again, even after an error. Returns True."""
        if not self._lock.locked():
            raise RuntimeError("cannot wait on un-acquired lock")
        claim = self._claims.claim(self._line)
        try:
            place = self._leave(self._line.park, self._release)
        except BaseException:
            claim.ended()
            raise
        try:
            await place  # a waiter that is cancelled after its notification passes that on there
        except GeneratorExit:
            claim.give_up()
            raise
        except BaseException:
            await self._acquire_again(claim)
            raise
        claim.was_notified()
        try:
            await self._acquire_again(claim)
        except BaseException:
            claim.pass_on()
            raise
        return True

    async def _acquire_again(self, claim: Claim) -> None:
        cancelled = None
        while True:
            try:
                if self._keeps_claims:
                    await self._lock.acquire_again(claim)
                else:
                    await self._lock.acquire()
                    if not claim.ended():
                        self._lock.release()
                break
            except CancelledError as error:
                cancelled = error
            except BaseException:
                # A task that is destroyed with its loop cannot wait for the lock, which another task may hold.
                claim.give_up()
                raise
        if cancelled is not None:
            try:
                raise cancelled
            finally:
                cancelled = None

    async def wait_for(self, predicate: Callable[[], T]) -> T:
        """Wait until the predicate, called with the lock held, returns a true value; returns that value."""
        result = predicate()
        while not result:
            await self.wait()
            result = predicate()
        return result

    def wait_sync(self, timeout: float | None = None) -> bool:
        """Wait in a plain thread: True once notified, False after `timeout` seconds; it holds the lock again."""
        timeout, acquire = optional_seconds(timeout), self._lock.acquire_sync
        if not self._lock.locked():
            raise RuntimeError("cannot wait on un-acquired lock")
        place = self._leave(self._line.park_sync, self._lock.release)
        try:
            notified = self._line.wait_parked(place, timeout)
        except BaseException:  # raised by a signal handler
            _insist(acquire)
            raise
        try:
            _insist(acquire)
        except BaseException:
            if notified:
                self._line.unpark(1)  # as in `wait`
            raise
        return notified

    def wait_for_sync(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        """wait_for in a plain thread; returns what the predicate returned last, after at most `timeout` seconds."""
        timeout = optional_seconds(timeout)
        deadline = None if timeout is None else time.monotonic() + timeout
        result = predicate()
        while not result:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                break
            self.wait_sync(left)
            result = predicate()
        return result

    def _leave(self, park: Callable[[], Waiter], release: Callable[[], object]) -> Waiter:
        """Take a place in the line, then release the lock: so no notification comes in between."""
        place = park()
        try:
            release()
        except BaseException:
            place.close()
            raise
        return place

    def notify(self, n: int = 1) -> None:
        """Wake at most n waiters, in the order in which they came; each resumes once it holds the lock again."""
        if not self._lock.locked():
            raise RuntimeError("cannot notify on un-acquired lock")
        self._line.unpark(n)

    def notify_all(self) -> None:
        self.notify(sys.maxsize)

    def statistics(self) -> dict[str, object]:
        """{waiting: now; waits, grants, cancels, passes: since it was made; lock: the lock's statistics}."""
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
        return described(self._line, self, state)


def _insist(acquire: Callable[[], object]) -> None:
    """Acquire the lock, even if a signal handler raises meanwhile: that exception is raised afterwards, because the
    code that it reaches is about to release the lock."""
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
