"""Scheduler: contexts, and the jobs that are dealt out to them. Owns the contexts from start to stop, and
counts the jobs that are not done. Runs nothing on a submitter's thread, and drops nothing."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar

from uringloop._core.patience import seconds
from uringloop.errors import SchedulerFull
from uringloop.loop import EventLoop, new_event_loop
from uringloop.scheduler.context import Context, Hook, current_context
from uringloop.scheduler.dispatch import Dispatch, by_key, policy
from uringloop.scheduler.job import Job
from uringloop.scheduler.served import Served, serve
from uringloop.sync.semaphore import Semaphore
from uringloop.sync.tally import Tally

T = TypeVar("T")
Work = Coroutine[Any, Any, T] | Callable[..., Coroutine[Any, Any, T]]

NEW, RUNNING, STOPPING, STOPPED = "new", "running", "stopping", "stopped"


@dataclass(frozen=True)
class StopReport:
    """What a stop had to break off."""

    cancelled: int = 0  # jobs that did not finish in time
    abandoned: list[Job[Any]] = field(default_factory=list)  # that did not even end when cancelled
    dead: list[Context] = field(default_factory=list)  # contexts whose loop had died; `error` says of what


class Scheduler:
    """Many event loops, each in a thread of its own, and one place to submit jobs to them.

    `dispatch` is "round_robin", "least_loaded", "hash", "local", or a function of (contexts, key). Jobs that
    have not started may be taken over by an idle context, unless `stealing` is off or a key or context given.
    With `max_pending`, no more than so many jobs are pending at a time: submit raises, submit_async waits.
    `pin` gives each context a CPU of its own. The hooks are called with the context, in its thread."""

    def __init__(
        self,
        workers: int | None = None,
        *,
        dispatch: str | Dispatch = "round_robin",
        stealing: bool = True,
        max_pending: int | None = None,
        name: str = "uringloop",
        pin: bool = False,
        on_start: Hook | None = None,
        on_stop: Hook | None = None,
        loop_factory: Callable[[], EventLoop] = new_event_loop,
    ) -> None:
        cpus = sorted(os.sched_getaffinity(0))
        count = len(cpus) if workers is None else workers
        if count < 1:
            raise ValueError(f"workers must be at least 1, not {count}")
        self.name = name
        self._options: dict[str, Any] = {
            "loop_factory": loop_factory, "on_start": on_start, "on_stop": on_stop,
        }  # fmt: skip
        self._cpus: list[set[int] | None] = [{cpus[i % len(cpus)]} if pin else None for i in range(count)]
        self._dispatch, self._by_key = policy(dispatch), by_key()
        self._stays = dispatch in ("hash", "local")  # what such a policy chose is not to be taken over
        self._stealing = stealing and count > 1
        self._room = None if max_pending is None else Semaphore(max_pending)
        self._state = NEW
        self._guard = threading.Lock()  # of starting and stopping
        self._alive = Tally()
        self._served: list[Served] = []
        self._threads: ThreadPoolExecutor | None = None
        self.contexts: tuple[Context, ...] = ()
        self._living: tuple[Context, ...] = ()

    # Start and stop

    def start(self) -> None:
        """Start the contexts; `with` and `async with` do."""
        with self._guard:
            if self._state != NEW:
                raise RuntimeError(f"the scheduler is {self._state}: it starts once")
            contexts: list[Context] = []
            try:
                for number, cpus in enumerate(self._cpus):
                    contexts.append(Context(f"{self.name}-{number}", cpus=cpus, **self._options))
                    contexts[-1].start()
            except BaseException:
                _end([context for context in contexts if context.alive], 0)
                raise
            self.contexts = self._living = tuple(contexts)
            if self._stealing:
                intakes = tuple(context.intake for context in contexts)
                for intake in intakes:
                    intake.set_peers(intakes)
            self._state = RUNNING

    def stop(self, timeout: float | None = None, grace: float = 5.0) -> StopReport:
        """End everything, losing nothing that can be finished. From a plain thread; `aclose` is for loops.

        1. Refuse: submit raises, but for jobs that jobs of this scheduler submit. Servers accept no more.
        2. Finish: wait until all jobs are done, those too that others submit and those that are suspended; at
           most `timeout` seconds (None: as long as it takes).
        3. Cancel: each context refuses whatever comes now, cancels the jobs that have not started, and the
           tasks of those that have.
        4. Run the cancellations, for at most `grace` seconds.
        5. Shut down the contexts' async generators and executors, and the threads of run_sync.
        6. Close the loops: operations in the kernel are cancelled and drained, rings and descriptors freed.
        7. Join the threads.
        8. Report what was cancelled and what, not having ended even so, was abandoned; such a job fails with
           RuntimeError. Nobody waits for it in vain.

        A stop while another is under way waits for that one."""
        if current_context() in self.contexts and self.contexts:
            raise RuntimeError("a context of the scheduler cannot wait for the scheduler's end")
        timeout, grace = seconds(timeout), seconds(grace) or 0.0
        with self._guard:
            if self._state in (NEW, STOPPED):
                self._state = STOPPED
                return StopReport()
            self._state = STOPPING
            for served in self._served:
                served.close()
            self._alive.wait_sync(timeout)
            cancelled = self._alive.count
            if self._threads is not None:
                self._threads.shutdown(wait=cancelled == 0, cancel_futures=True)
            _end(self.contexts, grace)
            self._state = STOPPED
            return StopReport(
                cancelled,
                [job for context in self.contexts for job in context.abandoned],
                [context for context in self.contexts if context.error is not None],
            )

    async def aclose(self, timeout: float | None = None, grace: float = 5.0) -> StopReport:
        """`stop`, awaited on a loop that is none of the scheduler's."""
        return await asyncio.get_running_loop().run_in_executor(None, self.stop, timeout, grace)

    def join(self, timeout: float | None = None) -> bool:
        """From a plain thread: wait for all jobs to be done, and those they submit. False after `timeout`."""
        return self._alive.wait_sync(timeout)

    async def join_async(self) -> None:
        """The same on any loop; a job that awaits this waits for itself."""
        await self._alive.wait()

    # Jobs

    def submit(
        self,
        work: Work[T],
        *args: Any,
        key: Hashable = None,
        context: Context | None = None,
        name: str | None = None,
    ) -> Job[T]:
        """Hand in a coroutine, or an async function and its arguments. From any thread or loop. What cannot
        be accepted is closed, and RuntimeError raised (SchedulerFull where `max_pending` is the reason)."""
        coroutine = _coroutine(work, args)
        if self._room is not None and not self._room.acquire_nowait():
            coroutine.close()
            raise SchedulerFull("max_pending jobs are pending")
        return self._hand_in(coroutine, key, context, name)

    async def submit_async(
        self,
        work: Work[T],
        *args: Any,
        key: Hashable = None,
        context: Context | None = None,
        name: str | None = None,
    ) -> Job[T]:
        """submit, but where `max_pending` jobs are pending it waits, first come first served."""
        coroutine = _coroutine(work, args)
        if self._room is not None:
            try:
                await self._room.acquire()
            except BaseException:
                coroutine.close()
                raise
        return self._hand_in(coroutine, key, context, name)

    def submit_many(self, works: Iterable[Work[T]], *, key: Hashable = None) -> list[Job[T]]:
        """submit each; a context that sleeps is woken once."""
        return [self.submit(work, key=key) for work in works]

    def map(self, function: Callable[..., Coroutine[Any, Any, T]], *iterables: Iterable[Any]) -> Iterator[T]:
        """Submit `function` of each, now; the results come in order. For plain threads."""
        jobs = [self.submit(function, *args) for args in zip(*iterables, strict=False)]
        return (job.result() for job in jobs)

    def broadcast(self, function: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> list[Job[T]]:
        """Submit it once on each living context."""
        return [self.submit(function, *args, context=context) for context in self.contexts if context.alive]

    def run_sync(self, function: Callable[..., T], *args: Any) -> Job[T]:
        """Run blocking code in a thread beside the loops."""
        job: Job[T] = Job(self)
        self._admit(job, None)
        cvars = contextvars.copy_context()

        def run() -> None:
            if job._begin_without_a_task():
                try:
                    value = cvars.run(function, *args)
                except BaseException as error:
                    job._settle(None, error)
                else:
                    job._settle(value, None)

        try:
            with self._guard:
                if self._threads is None:
                    self._threads = ThreadPoolExecutor(thread_name_prefix=f"{self.name}-sync")
                threads = self._threads
            threads.submit(run).add_done_callback(lambda ran: job.cancel() if ran.cancelled() else None)
        except BaseException:
            job.cancel()
            raise
        return job

    def _hand_in(
        self, coroutine: Coroutine[Any, Any, T], key: Hashable, context: Context | None, name: str | None
    ) -> Job[T]:
        job: Job[T] = Job(self, name)
        self._admit(job, coroutine)
        cvars = contextvars.copy_context()
        pinned = self._stays or key is not None or context is not None
        try:
            while True:
                target = context or self._choose(key)
                if target.intake.submit(job, coroutine, cvars, pinned):
                    return job
                if context is not None:
                    raise RuntimeError(f"{context!r} takes no jobs")
                self._living = tuple(living for living in self.contexts if living.alive)
        except BaseException:
            coroutine.close()
            job.cancel()
            raise

    def _choose(self, key: Hashable) -> Context:
        contexts = self._living
        if not contexts:
            raise RuntimeError("no context of the scheduler takes jobs any more")
        return (self._dispatch if key is None else self._by_key)(contexts, key)

    def _admit(self, job: Job[Any], coroutine: Coroutine[Any, Any, Any] | None) -> None:
        # Counted first: a stop that came before is seen here, one that comes after sees the job.
        self._alive.begin()
        if self._state != RUNNING and not (self._state == STOPPING and current_context() in self.contexts):
            if coroutine is not None:
                coroutine.close()
            job.cancel()
            raise RuntimeError(f"the scheduler is {self._state}")

    def _settled(self, job: Job[Any]) -> None:
        """Called by each job when it is settled, once."""
        if job._intake is not None:
            job._intake.settled(job)
        if self._room is not None:
            self._room.release()
        self._alive.end()

    # Servers

    def serve(
        self,
        client_connected_cb: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None] | None]
        | None = None,
        host: str | None = None,
        port: int | None = None,
        *,
        path: str | None = None,
        protocol_factory: Callable[[], asyncio.BaseProtocol] | None = None,
        **options: Any,
    ) -> Served:
        """Listen on every context, the connections spread over all. From a plain thread; `options` are those
        of `loop.create_server` (ssl, backlog, ...)."""
        served = serve(self, client_connected_cb, host, port, path, protocol_factory, options)
        self._served.append(served)
        return served

    def statistics(self) -> dict[str, Any]:
        """{state, pending: jobs that are not done; contexts: of each; and their sums}."""
        contexts = [context.statistics() for context in self.contexts]
        summed = ("submitted", "started", "stolen", "done", "failed", "cancelled", "queued", "running")
        return {
            "state": self._state,
            "pending": self._alive.count,
            **{what: sum(one[what] for one in contexts) for what in summed},
            "contexts": contexts,
        }

    def __enter__(self) -> Scheduler:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop(None if kind is None else 0)

    async def __aenter__(self) -> Scheduler:
        self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose(None if kind is None else 0)

    def __repr__(self) -> str:
        return (
            f"<Scheduler {self.name} {self._state} contexts={len(self._living)} pending={self._alive.count}>"
        )


def _coroutine(work: Work[T], args: tuple[Any, ...]) -> Coroutine[Any, Any, T]:
    coroutine = work(*args) if callable(work) else work
    if not inspect.isawaitable(coroutine) or not hasattr(coroutine, "send"):
        raise TypeError(f"a coroutine or an async function is submitted, not {work!r}")
    return coroutine


def _end(contexts: Iterable[Context], grace: float) -> None:
    for context in contexts:
        context.ask_to_stop(grace)
    for context in contexts:
        context.thread.join()
