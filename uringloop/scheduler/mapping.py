"""Mapping: the jobs of one call of `map` or `map_async`. Takes items from the input only while few of its jobs have
results that the caller has not taken, and cancels the jobs that are left at its end."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from typing import Any, Generic, TypeVar

from uringloop._core.handoff.timeouts import optional_seconds
from uringloop.scheduler.job import Job, coroutine_of
from uringloop.sync.event import AutoResetEvent

T = TypeVar("T")

BUFFERSIZE = 1000


class Mapping(Generic[T]):
    def __init__(
        self,
        scheduler: Any,
        function: Callable[..., Coroutine[Any, Any, T]],
        items: Iterator[tuple[Any, ...]],
        *,
        buffersize: int = BUFFERSIZE,
        as_completed: bool = False,
        fail_fast: bool = False,
        timeout: float | None = None,
    ) -> None:
        if not isinstance(buffersize, int) or buffersize < 1:
            raise ValueError(f"buffersize must be an int of at least 1, not {buffersize!r}")
        seconds = optional_seconds(timeout)
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._scheduler, self._room = scheduler, scheduler._room
        self._function, self._items = function, items
        self._buffersize = buffersize
        self._as_completed, self._fail_fast = as_completed, fail_fast
        self._next: Coroutine[Any, Any, T] | None = (
            None  # of the item that was taken last, until it is submitted
        )
        self._jobs: deque[Job[T]] = (
            deque()
        )  # in the order of their items; results that the caller has are no more here
        # The thread that settles a job uses these three:
        self._ended: deque[Job[T]] = deque()  # with as_completed: in the order in which they ended
        self._failed: Job[T] | None = None  # with fail_fast
        self._changed = AutoResetEvent()

    def _settled(self, job: Job[T]) -> None:
        if self._as_completed:
            self._ended.append(job)
        if self._fail_fast and self._failed is None and (job.cancelled() or job.exception() is not None):
            self._failed = job
        self._changed.set()

    def _ready(self) -> Job[T] | None:
        """Return the job whose outcome the caller gets next; None while that has not ended."""
        if self._failed is not None:
            return self._failed
        if self._as_completed:
            return self._ended[0] if self._ended else None
        return self._jobs[0] if self._jobs and self._jobs[0].done() else None

    def _take(self, job: Job[T]) -> Job[T]:
        self._jobs.remove(job)  # the first one, unless as_completed or fail_fast has chosen it
        if self._as_completed and self._failed is None:
            self._ended.popleft()
        return job

    def _fill(self) -> bool:
        """Submit until there are enough jobs, no room for one, or a result. False: all items are submitted."""
        while len(self._jobs) < self._buffersize and self._ready() is None:
            if self._next is None:
                args = next(self._items, None)
                if args is None:
                    return False
                self._next = coroutine_of(self._function, args)
            if self._room is not None and not self._room.acquire_nowait():
                return True
            self._submit()
        return True

    def _submit(self) -> None:
        coroutine, self._next = self._next, None
        job = self._scheduler._hand_in(Job(self._scheduler), coroutine, None, None)
        self._jobs.append(job)
        job._call_when_settled(self._settled)

    def _left(self) -> float | None:
        return None if self._deadline is None else max(self._deadline - time.monotonic(), 0)

    def _end(self) -> None:
        if self._next is not None:
            self._next.close()
        for job in self._jobs:
            job.cancel()

    def results(self) -> Iterator[T]:
        """Submit the first jobs; the iterator returns the results, in a plain thread."""
        iterator = self._results()
        next(iterator)
        return iterator  # type: ignore[return-value]  # None was only for the step above

    def _results(self) -> Generator[T | None, None, None]:
        try:
            self._fill()
            yield None
            while True:
                more = self._fill()
                job = self._ready()
                if job is not None:
                    yield self._take(job).result()
                elif self._jobs:
                    if not self._changed.wait_sync(self._left()):
                        raise TimeoutError
                elif not more:
                    return
                elif not self._room.acquire_sync(self._left()):
                    raise TimeoutError
                else:
                    self._submit()
        finally:
            self._end()

    async def results_async(self) -> AsyncGenerator[T, None]:
        """The same for a task, on any loop. Submits nothing before the first result is awaited."""
        try:
            while True:
                more = self._fill()
                job = self._ready()
                if job is not None:
                    yield await self._take(job)
                elif self._jobs:
                    async with asyncio.timeout(self._left()):
                        await self._changed.wait()
                elif not more:
                    return
                else:
                    async with asyncio.timeout(self._left()):
                        await self._room.acquire()
                    self._submit()
        finally:
            self._end()
