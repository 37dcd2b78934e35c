"""Flight: one operation in the kernel, with the objects that it uses and the task that awaits it."""

from __future__ import annotations

import asyncio
import errno
import os
from collections import deque
from contextlib import suppress
from typing import Any, NamedTuple

from uringloop.ops.package import liburing

MORE = int(liburing.IORING_CQE_F_MORE)
STOPPED = (errno.ECANCELED, errno.EINTR)  # EINTR: a worker thread of the kernel was running it


class Completion(NamedTuple):
    """One completion: the operation's result, which is not negative, and the completion's flags."""

    result: int
    flags: int


class Flight:
    """Owns the memory that the kernel may read or write, until the last completion, even if no task waits for it."""

    __slots__ = (
        "completions",
        "done",
        "failure",
        "follower",
        "forbidden",
        "keep",
        "opens",
        "timer",
        "token",
        "value",
        "waiter",
        "wanted",
    )

    def __init__(self, token: int, keep: Any, opens: bool) -> None:
        self.token = token  # its user_data
        self.keep = keep
        self.opens = opens
        self.completions: deque[Completion] = deque()
        self.value: int | None = None
        self.failure = 0
        self.forbidden: str | None = None  # what the error says if URINGLOOP_RESTRICT forbids it
        self.done = False  # the last completion has arrived, or none ever will
        self.wanted = True
        self.waiter: asyncio.Future[None] | None = None
        self.timer: Flight | None = None  # the timeout linked to it
        self.follower: Flight | None = None  # the next operation in its chain

    def complete(self, result: int, flags: int) -> None:
        if not flags & MORE:
            self.done = True
            self.keep = None
        if result < 0:
            self.failure = -result
        else:
            self.completions.append(Completion(result, flags))
        if not self.wanted:
            self.let_go()
        self.wake()

    def wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def fail(self, number: int) -> None:
        """The kernel refused the entry. `keep` stays, because the entry is still in the ring."""
        self.failure = number
        self.done = True
        self.wake()

    def let_go(self) -> None:
        """No task takes the results any more: close the descriptors among them, now and when later ones arrive."""
        self.wanted = False
        while self.completions:
            found = self.completions.popleft().result
            if self.opens:
                with suppress(OSError):
                    os.close(found)

    async def more(self) -> None:
        """Wait for another completion, or the last one."""
        while not self.completions and not self.done:
            self.waiter = asyncio.get_running_loop().create_future()
            await self.waiter

    async def landed(self) -> None:
        """Wait for the last completion; and for that of the timeout, if it may have ended the operation."""
        while not self.done:
            self.waiter = asyncio.get_running_loop().create_future()
            await self.waiter
        if self.timer is not None and self.failure in STOPPED:
            await self.timer.landed()

    def result(self) -> int:
        if self.failure in STOPPED and self.timer is not None and self.timer.failure == errno.ETIME:
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        if self.failure == errno.EACCES and self.forbidden:
            raise PermissionError(self.failure, self.forbidden)
        if self.failure:
            raise OSError(self.failure, os.strerror(self.failure))
        if self.value is None:
            if not self.completions:
                raise asyncio.InvalidStateError("the operation was abandoned, and its result dropped")
            self.value = self.completions.popleft().result
        return self.value
