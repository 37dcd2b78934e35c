"""Scheduler: distributes jobs to contexts. Owns the contexts from start to stop, and counts the jobs that are not
done. Runs no job on a submitter's thread, and loses none."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypeVar

from uringloop._core.handoff.timeouts import optional_seconds
from uringloop.errors import SchedulerFull
from uringloop.loop import EventLoop, new_event_loop
from uringloop.scheduler.context import LEAST_END_SECONDS, Context, Hook, current_context
from uringloop.scheduler.dispatch import Dispatch, by_key, policy
from uringloop.scheduler.group import JobGroup
from uringloop.scheduler.job import InternalJobs, Job, Work, coroutine_of
from uringloop.scheduler.mapping import Mapping
from uringloop.scheduler.served import Connected, Factory, Served
from uringloop.scheduler.stopping import StopReport, end_contexts, longest_end_seconds
from uringloop.scheduler.sync_threads import SyncThreads
from uringloop.sync.semaphore import Semaphore
from uringloop.sync.wait_group import WaitGroup

T = TypeVar("T")

NEW, RUNNING, STOPPING, STOPPED = "new", "running", "stopping", "stopped"


class Scheduler:
    """Many event loops, each in a thread of its own, and one place to submit jobs to them.

    `dispatch` is "round_robin", "least_loaded", "hash", "local", or a function of (contexts, key). An idle context
    may steal jobs that have not started, unless `stealing` is off or the job has a key or a context. `max_pending`
    limits how many jobs are pending at a time: beyond that submit raises, and submit_async waits. `pin` gives each
    context a CPU of its own. The scheduler calls the hooks with the context, in the context's thread."""

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
        self._decides = callable(dispatch)  # the program's own function, which also gets jobs that have a key
        self._stays = dispatch in ("hash", "local")  # no context may steal what such a policy has placed
        self._stealing = stealing and count > 1
        self._room = None if max_pending is None else Semaphore(max_pending)
        self._state = NEW
        # One thread at a time starts or stops the scheduler, and `_busy` says that one does. No thread holds the
        # condition's lock while it waits for jobs.
        self._turn = threading.Condition()
        self._busy = False
        self._alive, self._serving = WaitGroup(), WaitGroup()
        self._sync_threads = SyncThreads(name)
        self._internal_jobs = InternalJobs(self._alive)
        self._served: list[Served] = []
        self.contexts: tuple[Context, ...] = ()
        self._living: tuple[Context, ...] = ()

    # Start and stop

    def start(self) -> None:
        """Start the contexts; `with` and `async with` call it."""
        with self._turns(None):
            if self._state != NEW:
                raise RuntimeError(f"the scheduler is {self._state}: it can start only once")
            contexts: list[Context] = []
            try:
                for number, cpus in enumerate(self._cpus):
                    contexts.append(Context(f"{self.name}-{number}", cpus=cpus, **self._options))
                    contexts[-1].start()
            except BaseException:
                end_contexts([context for context in contexts if context.alive], 0)
                raise
            self.contexts = self._living = tuple(contexts)
            if self._stealing:
                intakes = tuple(context.intake for context in contexts)
                for intake in intakes:
                    intake.set_peers(intakes)
            self._state = RUNNING

    def stop(self, timeout: float | None = None, grace: float = 5.0) -> StopReport:
        """End everything, and finish all work for which there is time. Call it from a plain thread; on a loop, await
        `aclose`.

        1. Refuse: submit raises, except for jobs that this scheduler's own jobs or its servers' open connections
           submit. Servers accept no more connections.
        2. Finish: wait until all connections have ended and all jobs are done, including suspended jobs and jobs
           that other jobs submit; at most `timeout` seconds (None: without a limit).
        3. Cancel: each context refuses all new jobs, and cancels the jobs that have not started and the tasks of
           those that have.
        4. Run the cancellations, for at most `grace` seconds.
        5. Shut down the contexts' async generators and executors and the threads of run_sync, for at most
           `grace` seconds again, or 3 if that is longer; call the stop hooks.
        6. Close the loops: cancel and drain the operations in the kernel, free rings and descriptors.
        7. Join the threads. If a hook or blocking code holds one up, wait as long again as step 5 may take, then
           leave the thread behind and report its context as stuck.
        8. Report the jobs that were cancelled, and those that did not end even so and were abandoned. An abandoned
           job fails with RuntimeError, and so does each job that a stuck context had not started: no caller waits
           for them in vain.

        A stop during another stop waits for that one, and raises TimeoutError if that takes longer than it would
        have taken itself."""
        self._not_from_within("stop()", "aclose()")
        timeout, grace = optional_seconds(timeout), optional_seconds(grace) or 0.0
        with self._turns(None if timeout is None else timeout + longest_end_seconds(grace)):
            if self._state in (NEW, STOPPED):
                self._state = STOPPED
                return StopReport()
            self._state = STOPPING
            for served in self._served:
                served.drain(self._serving)
            self._wait_for_all(timeout)
            cancelled = self._alive.count
            connections = sum(served.connections for served in self._served)
            self._sync_threads.close()
            deadline = time.monotonic() + (grace if cancelled else max(grace, LEAST_END_SECONDS))
            stuck = end_contexts(self.contexts, grace)
            abandoned = self._sync_threads.wait(max(deadline - time.monotonic(), 0))
            self._state = STOPPED
            return StopReport(
                cancelled,
                [*abandoned, *(job for context in self.contexts for job in context.abandoned)],
                [context for context in self.contexts if context.error is not None],
                stuck,
                connections,
            )

    def _wait_for_all(self, timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            for tally in (self._serving, self._alive):  # an open connection may still submit jobs
                left = None if deadline is None else deadline - time.monotonic()
                if not tally.wait_sync(left):
                    return
            if self._serving.count == 0:
                return

    @contextmanager
    def _turns(self, timeout: float | None) -> Iterator[None]:
        """Let one thread at a time start or stop. A thread that is interrupted leaves that to the next."""
        with self._turn:
            if not self._turn.wait_for(lambda: not self._busy, timeout):
                raise TimeoutError("another stop of the scheduler is under way")
            self._busy = True
        try:
            yield
        finally:
            with self._turn:
                self._busy = False
                self._turn.notify_all()

    def _not_from_within(self, what: str, instead: str) -> None:
        if self._is_mine():
            raise RuntimeError("a context of the scheduler cannot wait for the scheduler's end")
        if asyncio._get_running_loop() is not None:
            raise RuntimeError(f"{what} would block the event loop that this thread runs: `await {instead}`")

    def _is_mine(self) -> bool:
        """Whether this thread is a context's, or one of run_sync's."""
        context = current_context()
        return (context is not None and context in self.contexts) or self._sync_threads.is_current_thread

    async def aclose(self, timeout: float | None = None, grace: float = 5.0) -> StopReport:
        """Await `stop` on a loop that is not one of the scheduler's. If the caller is cancelled, the stop goes on."""
        if self._is_mine():
            raise RuntimeError("a context of the scheduler cannot wait for the scheduler's end")
        ended: Future[StopReport] = Future()
        ended.set_running_or_notify_cancel()

        def stop() -> None:
            try:
                ended.set_result(self.stop(timeout, grace))
            except BaseException as error:
                ended.set_exception(error)

        # In a thread of its own, because all threads of the loop's executor may be waiting for jobs.
        threading.Thread(target=stop, name=f"{self.name}-stop").start()
        return await asyncio.shield(asyncio.wrap_future(ended))

    def join(self, timeout: float | None = None) -> bool:
        """Wait in a plain thread until all jobs, and all that they submit, are done. False after `timeout` seconds."""
        return self._alive.wait_sync(timeout)

    async def join_async(self) -> None:
        """The same on any loop. A job must not await this: it would wait for itself."""
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
        """Submit a coroutine, or an async function and its arguments, from any thread or loop. If the scheduler
        cannot accept it, it closes the coroutine and raises RuntimeError (SchedulerFull because of `max_pending`)."""
        coroutine = coroutine_of(work, args)
        if self._room is not None and not self._room.acquire_nowait():
            coroutine.close()
            raise SchedulerFull("max_pending jobs are pending")
        return self._hand_in(Job(self, name), coroutine, key, context)

    async def submit_async(
        self,
        work: Work[T],
        *args: Any,
        key: Hashable = None,
        context: Context | None = None,
        name: str | None = None,
    ) -> Job[T]:
        """submit, which waits while `max_pending` jobs are pending, first come, first served."""
        coroutine = coroutine_of(work, args)
        if self._room is not None:
            try:
                await self._room.acquire()
            except BaseException:
                coroutine.close()
                raise
        return self._hand_in(Job(self, name), coroutine, key, context)

    def submit_many(self, works: Iterable[Work[T]], *, key: Hashable = None) -> list[Job[T]]:
        """Submit each, and wake each sleeping context once. If the scheduler cannot accept all, it accepts none."""
        batch: list[Any] = []
        rest = iter(works)
        try:
            for work in rest:
                coroutine = coroutine_of(work, ())
                if self._room is not None and not self._room.acquire_nowait():
                    coroutine.close()
                    raise SchedulerFull("max_pending jobs are pending")
                self._alive.begin()
                batch.append((Job(self), coroutine, contextvars.copy_context()))
            self._admit()
            parts = self._dealt(key, batch)
        except BaseException:
            for job, coroutine, _ in batch:
                coroutine.close()
                job.cancel()
            for work in rest if isinstance(works, Sequence) else ():
                if inspect.iscoroutine(work):
                    work.close()
            raise
        for context, part in parts.items():
            if not context.intake.submit_batch(part, self._stays or key is not None):
                for job, coroutine, cvars in part:  # the context ended just now
                    self._place_or_fail(job, coroutine, cvars, key)
        return [job for job, _, _ in batch]

    def _dealt(self, key: Hashable, batch: list[Any]) -> dict[Context, list[Any]]:
        parts: dict[Context, list[Any]] = {}
        try:
            for one in batch:
                context = self._choose(key)
                context.intake.reserve(1)
                parts.setdefault(context, []).append(one)
        except BaseException:
            for context, part in parts.items():
                context.intake.reserve(-len(part))
            raise
        return parts

    def _place_or_fail(self, job: Job[Any], coroutine: Any, cvars: Any, key: Hashable) -> None:
        try:
            self._place(job, coroutine, cvars, key, None)
        except (
            BaseException
        ) as error:  # the batch's other jobs were submitted, so only this job gets the error
            coroutine.close()
            job._settle(None, error)

    def map(
        self, function: Callable[..., Coroutine[Any, Any, T]], *iterables: Iterable[Any], **options: Any
    ) -> Iterator[T]:
        """Submit `function` of each item, and return an iterator over the results, in order. For plain threads.

        It takes items lazily, so that the input may be endless: while `max_pending` jobs are pending, or `buffersize`
        (1000) results or jobs of this call wait to be taken, it takes none. `as_completed=True`: the results come as
        the jobs end. After `timeout` seconds, counted from the call, it raises TimeoutError. An error of a job is
        raised in the place of its result; `fail_fast=True`: as soon as the job has failed. At its end, for whatever
        reason, it cancels the jobs that have not ended."""
        return Mapping(self, function, zip(*iterables, strict=False), **options).results()

    def map_async(
        self, function: Callable[..., Coroutine[Any, Any, T]], *iterables: Iterable[Any], **options: Any
    ) -> AsyncGenerator[T, None]:
        """The same on any loop, with `async for`. A task that leaves early closes it, by `aclosing`."""
        return Mapping(self, function, zip(*iterables, strict=False), **options).results_async()

    def group(self) -> JobGroup:
        """Return a group of jobs that end together, for `async with`, or `with` in a plain thread."""
        return JobGroup(self)

    def broadcast(self, function: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> list[Job[T]]:
        """Submit the function once on each living context."""
        return [self.submit(function, *args, context=context) for context in self.contexts if context.alive]

    def run_sync(self, function: Callable[..., T], *args: Any) -> Job[T]:
        """Run blocking code in a thread that runs no loop."""
        if self._room is not None and not self._room.acquire_nowait():
            raise SchedulerFull("max_pending jobs are pending")
        job: Job[T] = Job(self)
        self._alive.begin()
        try:
            self._admit()
            self._sync_threads.run(job, function, args)
        except BaseException:
            job.cancel()
            raise
        return job

    def _submit_internal(self, coroutine: Coroutine[Any, Any, T], context: Context) -> Job[T]:
        """Submit a job of the scheduler's own, which max_pending does not count."""
        return self._hand_in(Job(self._internal_jobs), coroutine, None, context)

    def _hand_in(
        self, job: Job[T], coroutine: Coroutine[Any, Any, T], key: Hashable, context: Context | None
    ) -> Job[T]:
        self._alive.begin()
        cvars = contextvars.copy_context()
        try:
            self._admit()
            self._place(job, coroutine, cvars, key, context)
        except BaseException:
            coroutine.close()
            job.cancel()
            raise
        return job

    def _place(
        self,
        job: Job[T],
        coroutine: Coroutine[Any, Any, T],
        cvars: Any,
        key: Hashable,
        context: Context | None,
    ) -> None:
        pinned = self._stays or key is not None or context is not None
        while True:
            target = context or self._choose(key)
            if target.intake.submit(job, coroutine, cvars, pinned):
                return
            if context is not None:
                raise RuntimeError(f"{context!r} takes no jobs")
            self._living = tuple(living for living in self.contexts if living.alive)

    def _choose(self, key: Hashable) -> Context:
        contexts = self._living
        if not contexts:
            raise RuntimeError("no context of the scheduler takes jobs any more")
        if not self._decides:
            return (self._dispatch if key is None else self._by_key)(contexts, key)
        context = self._dispatch(contexts, key)
        if context not in contexts:
            raise RuntimeError(f"dispatch returned {context!r}, which is none of {contexts}")
        return context

    def _admit(self) -> None:
        """Raise if the scheduler takes no jobs. The caller has counted the job already, so a stop that starts after
        this check waits for the job."""
        if self._state != RUNNING and not (self._state == STOPPING and self._is_mine()):
            raise RuntimeError(f"the scheduler is {self._state}")

    def _settled(self) -> None:
        """Called by each job when it is settled, once."""
        if self._room is not None:
            self._room.release()
        self._alive.end()

    # Servers

    def serve(
        self,
        client_connected_cb: Connected | None = None,
        host: str | None = None,
        port: int | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        protocol_factory: Factory | None = None,
        **options: Any,
    ) -> Served:
        """Listen on every context, and spread the connections over all. Call it from a plain thread. `options` are
        those of `loop.create_server` (ssl, backlog, ...)."""
        if asyncio._get_running_loop() is not None:
            raise RuntimeError(
                "serve() would block the event loop that this thread runs: `await serve_async()`"
            )
        served = self._new_served(client_connected_cb, protocol_factory)
        try:
            for job in served.listening(self, host, port, path, options):
                job.result()
        except BaseException:
            served.close()
            raise
        return served

    async def serve_async(
        self,
        client_connected_cb: Connected | None = None,
        host: str | None = None,
        port: int | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        protocol_factory: Factory | None = None,
        **options: Any,
    ) -> Served:
        """The same on any loop."""
        served = self._new_served(client_connected_cb, protocol_factory)
        try:
            for job in served.listening(self, host, port, path, options):
                await job
        except BaseException:
            served.close()
            raise
        return served

    def _new_served(self, connected: Connected | None, factory: Factory | None) -> Served:
        served = Served(self.contexts, connected, factory)
        self._served = [one for one in self._served if not one.over] + [served]
        return served

    def statistics(self) -> dict[str, Any]:
        """{state; pending: jobs that are not done; connections: of servers; contexts: the statistics of each; and
        the sums of these, with `busy` in cores}."""
        contexts = [context.statistics() for context in self.contexts]
        summed = "submitted started stolen done failed cancelled queued running wakes sleeps busy".split()
        return {
            "state": self._state,
            "pending": self._alive.count,
            "connections": sum(served.connections for served in self._served),
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
