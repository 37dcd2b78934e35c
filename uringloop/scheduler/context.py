"""Context: one thread and its event loop. Owns both from start to end, and the Intake through which jobs arrive.
Makes no decisions: the dispatch policy chooses its jobs, and the scheduler decides when it ends."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from uringloop.errors import ContextDied
from uringloop.loop import EventLoop, new_event_loop
from uringloop.scheduler.intake import Intake

Hook = Callable[["Context"], object]

# The least time in which a context's async generators, executor and stop hook may end; `grace`, if that is longer.
LEAST_END_SECONDS = 3.0

_here = threading.local()


def current_context() -> Context | None:
    """Return the context that the calling thread belongs to; None in any other thread."""
    return getattr(_here, "context", None)


class Context:
    """One worker thread of a scheduler; `loop` is its event loop."""

    def __init__(
        self,
        name: str,
        *,
        loop_factory: Callable[[], EventLoop] = new_event_loop,
        cpus: set[int] | None = None,
        on_start: Hook | None = None,
        on_stop: Hook | None = None,
    ) -> None:
        self.name = name
        self.loop: EventLoop = loop_factory()
        self.intake = Intake(self.loop, name)
        self.cpus = cpus
        self.error: BaseException | None = None  # the exception that ended its loop
        self.abandoned: list[Any] = []  # jobs whose tasks did not end when cancelled
        # Called on the context's thread, once the context takes no more jobs.
        self.stop_callbacks: set[Callable[[], object]] = set()
        self._on_start, self._on_stop = on_start, on_stop
        self._grace = 0.0
        # Only the context's own thread uses these two:
        self._asked = False  # to stop
        self._ends = False  # the loop runs for the last time, to end the remaining tasks
        self._started = threading.Event()
        self._begun = self._cpu_clock = 0
        self._last: dict[str, Any] = {}  # statistics of the loop, saved before it closes
        self.thread = threading.Thread(target=self._main, name=name)

    def start(self) -> None:
        """Start the thread, and wait until its loop runs. Raises the exception of the start hook."""
        self.thread.start()
        self._started.wait()
        if self.error is not None:
            self.thread.join()
            raise self.error

    def ask_to_stop(self, grace: float) -> None:
        """Ask the context to refuse jobs, cancel its tasks and end; may be called from any thread. Tasks that don't
        end within `grace` seconds are abandoned."""
        self._grace = grace
        with suppress(RuntimeError):  # the loop is closed already
            self.loop.call_soon_threadsafe(self._stop_running)

    def _stop_running(self) -> None:
        self._asked = True
        if not self._ends:  # the last run, which ends the remaining tasks, must not be stopped
            self.loop.stop()

    def give_up(self) -> None:
        """Fail the jobs of a context whose thread is blocked, so that their waiters wake. Called from any thread, when
        the stop no longer waits for the context."""
        error = RuntimeError(f"abandoned: {self.name} was held up when it was to stop")
        self.intake.close(error)
        self._abandon(error)

    def _abandon(self, error: RuntimeError) -> None:
        self.abandoned += [job for job in list(self.intake.running) if job._settle(None, error)]

    @property
    def load(self) -> int:
        """The number of jobs that wait or run here; read without a lock, so it may be slightly old."""
        return self.intake.load

    @property
    def alive(self) -> bool:
        return not self.intake.closed

    def _main(self) -> None:
        _here.context = self
        try:
            self._set_up()
            self.loop.call_soon(self._started.set)
            self._run()
        except BaseException as error:
            self.error = error
            self.loop.call_exception_handler({"message": f"{self!r} died", "exception": error})
        finally:
            self._tear_down()
            self._started.set()

    def _run(self) -> None:
        """Run the loop until the context is asked to stop. A job that raises SystemExit or KeyboardInterrupt, or stops
        the loop, ends a run of the loop: the job gets the exception, and the loop runs again for all other jobs."""
        while not self._asked:
            try:
                self.loop.run_forever()
            except (SystemExit, KeyboardInterrupt) as error:
                if not any(
                    job._raised(error) for job in list(self.intake.running)
                ):  # no job has raised it, so only this can report it
                    message = f"{self!r} goes on after an exception that leaves a loop"
                    self.loop.call_exception_handler({"message": message, "exception": error})

    def _set_up(self) -> None:
        self._begun, self._cpu_clock = time.monotonic_ns(), time.pthread_getcpuclockid(threading.get_ident())
        with suppress(OSError), open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as name:
            name.write(self.name[:15])
        if self.cpus is not None:
            os.sched_setaffinity(0, self.cpus)
        if self._on_start is not None:
            self._on_start(self)

    def _tear_down(self) -> None:
        loop, intake = self.loop, self.intake
        self._ends = True
        intake.close(self._death())
        try:
            self._call_stop_callbacks()
            if self.error is not None:
                for job in list(intake.running):
                    job._break_off(self._death())
            self._finish(self._end_tasks())
            deadline = time.monotonic() + max(self._grace, LEAST_END_SECONDS)
            self._finish(_run_until_deadline(loop.shutdown_asyncgens(), deadline))
            self._finish(_end_executor(loop, deadline))
            if self._on_stop is not None:
                self._on_stop(self)
        except BaseException as error:
            loop.call_exception_handler({"message": f"{self!r} did not end cleanly", "exception": error})
        finally:
            self._last = {name: self.statistics()[name] for name in ("wakes", "sleeps", "busy")}
            self._cpu_clock = 0
            self._abandon(RuntimeError(f"abandoned when {self.name} stopped"))
            loop.close()

    def _death(self) -> ContextDied | None:
        """Make the exception that a job fails with when the loop has died. Each job needs its own: threads that raise
        the same exception share its traceback."""
        if self.error is None:
            return None
        death = ContextDied(f"{self.name} died of {self.error!r}")
        death.__cause__ = self.error
        return death

    def _finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the coroutine to its end, even if something ends the loop's run meanwhile: the SystemExit of a cancelled
        task, or a task's loop.stop()."""
        task = self.loop.create_task(work)
        while not task.done():
            try:
                self.loop.run_until_complete(task)
            except BaseException as error:
                message = f"{self!r} was interrupted while it ended"
                self.loop.call_exception_handler({"message": message, "exception": error})

    def _call_stop_callbacks(self) -> None:
        for ending in list(self.stop_callbacks):
            try:
                ending()
            except Exception as error:
                self.loop.call_exception_handler({"message": f"{ending!r} failed", "exception": error})

    async def _end_tasks(self) -> None:
        """Cancel all tasks, including those that start while others end."""
        deadline = time.monotonic() + self._grace
        asked: set[asyncio.Task[Any]] = {asyncio.current_task()}  # type: ignore[arg-type]
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in tasks - asked:
                task.cancel()
            asked |= tasks
            left = deadline - time.monotonic()
            if left <= 0 and asked >= tasks:
                await asyncio.sleep(0)  # let them receive the cancellation at least
                break
            await asyncio.wait(tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)

    def statistics(self) -> dict[str, Any]:
        """Numbers of jobs since the start and of now; and the loop's wakes, sleeps and busy fraction of one core."""
        intake = self.intake
        loop: dict[str, Any] = self._last
        if self._cpu_clock:
            elapsed = (time.monotonic_ns() - self._begun) / 1e9
            loop = {**self.loop._counts(), "busy": time.clock_gettime(self._cpu_clock) / elapsed}
        return {
            "name": self.name,
            "alive": self.alive,
            "submitted": intake.accepted,
            "started": intake.started,
            "stolen": intake.stolen,
            "done": intake.done,
            "failed": intake.failed,
            "cancelled": intake.cancelled,
            "queued": intake.pending,
            "running": len(intake.running),
            "wakes": loop.get("wakes", 0),
            "sleeps": loop.get("sleeps", 0),
            "busy": loop.get("busy", 0.0),
        }

    def __repr__(self) -> str:
        state = "running" if self.alive else "dead" if self.error is not None else "stopped"
        return f"<Context {self.name} {state} load={self.load}>"


async def _run_until_deadline(work: Coroutine[Any, Any, Any], deadline: float) -> None:
    """Run the coroutine until the deadline, then cancel it. If that fails, leave it behind, and let the loop close."""
    task = asyncio.ensure_future(work)
    await asyncio.wait([task], timeout=max(deadline - time.monotonic(), 0))
    if not task.done():
        task.cancel()
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is left behind on purpose
        await asyncio.sleep(0)


async def _end_executor(loop: EventLoop, deadline: float) -> None:
    """loop.shutdown_default_executor() with a deadline on every Python version: its threads may be blocked."""
    executor: Any = loop._default_executor  # type: ignore[attr-defined]
    if executor is None:
        return
    ended = loop.create_future()

    def wait() -> None:
        executor.shutdown(wait=True)
        with suppress(RuntimeError):  # the loop is closed, so it no longer waits for this
            loop.call_soon_threadsafe(ended.cancel)  # instead of a result: does nothing if the future is done

    loop._executor_shutdown_called = True  # type: ignore[attr-defined]
    thread = threading.Thread(target=wait, name="ending an executor", daemon=True)
    thread.start()
    await asyncio.wait([ended], timeout=max(deadline - time.monotonic(), 0))
    if ended.done():
        thread.join()
    else:
        executor.shutdown(wait=False, cancel_futures=True)
