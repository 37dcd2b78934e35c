"""JobGroup: asyncio.TaskGroup for jobs. Owns the jobs that are submitted to it, until all of them have ended."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Hashable
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

from uringloop.errors import JobExited
from uringloop.scheduler.context import Context
from uringloop.scheduler.job import Job, Work
from uringloop.sync.wait_group import WaitGroup

T = TypeVar("T")


class JobGroup:
    """Jobs of a scheduler that end together. `async with scheduler.group() as group:` waits at the end of its block for
    all jobs of the group; so does `with`, in a plain thread.

    The first job that fails, and an exception that leaves the block, cancel all other jobs of the group; on a loop,
    a failed job also cancels the task in its block. When all have ended, the block raises an ExceptionGroup of the
    errors. Jobs that are cancelled otherwise are no errors, as in a TaskGroup. Any thread or loop may submit while the
    block waits, for instance the group's own jobs."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler
        self._alive = WaitGroup()
        self._guard = threading.Lock()  # never held while other code runs
        # Under the guard:
        self._state = "new"  # then open, cancelling, ended
        self._jobs: set[Job[Any]] = set()
        self._errors: list[BaseException] = []
        # Set when a task enters the block; then only its loop's thread uses the next two.
        self._task: asyncio.Task[Any] | None = None
        self._in_block = False
        self._interrupted = False  # the group has cancelled the task

    # Jobs

    def submit(
        self,
        work: Work[T],
        *args: Any,
        key: Hashable = None,
        context: Context | None = None,
        name: str | None = None,
    ) -> Job[T]:
        """Scheduler.submit, of a job of this group. RuntimeError if the group is being cancelled or has ended."""
        self._begin(work)
        try:
            job = self._scheduler.submit(work, *args, key=key, context=context, name=name)
        except BaseException:
            self._alive.end()
            raise
        return self._added(job)

    async def submit_async(
        self,
        work: Work[T],
        *args: Any,
        key: Hashable = None,
        context: Context | None = None,
        name: str | None = None,
    ) -> Job[T]:
        """submit, which waits while `max_pending` jobs are pending."""
        self._begin(work)
        try:
            job = await self._scheduler.submit_async(work, *args, key=key, context=context, name=name)
        except BaseException:
            self._alive.end()
            raise
        return self._added(job)

    def _begin(self, work: Work[Any]) -> None:
        with self._guard:
            refused = self._state != "open"
            if not refused:
                self._alive.begin()
        if refused:
            if inspect.iscoroutine(work):
                work.close()
            raise RuntimeError(f"{self!r} takes no jobs")

    def _added(self, job: Job[T]) -> Job[T]:
        with self._guard:
            self._jobs.add(job)
            late = self._state == "cancelling"
        job._call_when_settled(self._settled)
        if late:
            job.cancel()
        return job

    def _settled(self, job: Job[Any]) -> None:
        """Called in the thread that settles the job."""
        error = None if job.cancelled() else job.exception()
        if isinstance(error, SystemExit | KeyboardInterrupt):
            exited = JobExited(f"{job!r} raised {error!r}")
            exited.__cause__ = error
            error = exited
        with self._guard:
            self._jobs.discard(job)
            if error is not None:
                self._errors.append(error)
        try:
            if error is not None:
                self._cancel()
        finally:
            self._alive.end()

    def _cancel(self) -> None:
        """Cancel all jobs, and the task that is in the block. From any thread."""
        with self._guard:
            if self._state != "open":
                return
            self._state = "cancelling"
            jobs = list(self._jobs)
        if self._task is not None:
            with suppress(RuntimeError):  # its loop is closed
                self._task.get_loop().call_soon_threadsafe(self._interrupt)
        for job in jobs:
            job.cancel()

    def _interrupt(self) -> None:
        if self._in_block and self._task is not None:
            self._interrupted = True
            self._task.cancel()

    def _has_ended(self) -> bool:
        with self._guard:
            if self._alive.count:
                return False
            self._state = "ended"
            return True

    # The block

    def _enter(self, task: asyncio.Task[Any] | None) -> None:
        with self._guard:
            if self._state != "new":
                raise RuntimeError(f"{self!r} has been entered already")
            self._task, self._in_block = task, task is not None
            self._state = "open"

    def _raise(self, error: BaseException | None) -> None:
        """Raise the errors of the jobs, and of the block. All jobs have ended."""
        if isinstance(error, SystemExit | KeyboardInterrupt):
            return  # the block raises it
        errors, self._errors = self._errors, []
        if error is not None and not isinstance(error, asyncio.CancelledError):
            errors.append(error)
        if not errors:
            return
        if self._task is not None and self._task.cancelling():
            # Another task cancels this one, which has raised no CancelledError for it: it gets the next one.
            self._task.uncancel()
            self._task.cancel()
        try:
            raise BaseExceptionGroup("unhandled errors in a JobGroup", errors) from None
        finally:
            del errors, error  # the traceback of an error refers to this frame

    def __enter__(self) -> JobGroup:
        if asyncio._get_running_loop() is not None:
            raise RuntimeError("the end of the block would block the event loop of this thread: `async with`")
        self._enter(None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self._cancel()
        while not self._has_ended():
            try:
                self._alive.wait_sync()
            except BaseException:  # Ctrl-C
                self._cancel()
                self._alive.wait_sync()
                raise
        self._raise(error)

    async def __aenter__(self) -> JobGroup:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("no task runs the block")
        self._enter(task)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._task is not None
        self._in_block = False
        cancelled = error if isinstance(error, asyncio.CancelledError) else None
        if self._interrupted and self._task.uncancel() == 0:
            cancelled = None
        if error is not None:
            self._cancel()
        while not self._has_ended():
            try:
                await self._alive.wait()
            except asyncio.CancelledError as interruption:
                if self._state == "open":
                    cancelled = interruption
                    self._cancel()
        try:
            self._raise(error)
            if cancelled is not None:
                raise cancelled
        finally:
            self._task = None
            del error, cancelled

    def __repr__(self) -> str:
        return f"<JobGroup {self._state} jobs={len(self._jobs)} errors={len(self._errors)}>"
