"""Context: one thread and its event loop. Owns both from start to end, and the intake that jobs come through.
Decides nothing: which jobs come is dispatch's business, when it ends is the scheduler's."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from uringloop.loop import EventLoop, new_event_loop
from uringloop.scheduler.intake import Intake

Hook = Callable[["Context"], object]

_here = threading.local()


def current_context() -> Context | None:
    """The context whose thread this is; None in any other."""
    return getattr(_here, "context", None)


class Context:
    """A worker of a scheduler; `loop` is its event loop."""

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
        self.error: BaseException | None = None  # what its loop died of
        self.abandoned: list[Any] = []  # jobs whose tasks would not end
        self._on_start, self._on_stop = on_start, on_stop
        self._grace = 0.0
        self._started = threading.Event()
        self._begun = self._cpu_clock = 0
        self._last: dict[str, Any] = {}  # statistics of the end
        self.thread = threading.Thread(target=self._main, name=name)

    def start(self) -> None:
        """Returns when the loop runs; raises what the start hook raised."""
        self.thread.start()
        self._started.wait()
        if self.error is not None:
            self.thread.join()
            raise self.error

    def ask_to_stop(self, grace: float) -> None:
        """From any thread: refuse jobs, cancel what runs, end. What does not end in `grace` is abandoned."""
        self._grace = grace
        with suppress(RuntimeError):  # closed already
            self.loop.call_soon_threadsafe(self.loop.stop)

    @property
    def load(self) -> int:
        """Jobs that wait or run here; without a lock, and so of a moment ago."""
        return self.intake.load

    @property
    def alive(self) -> bool:
        return not self.intake.closed

    def _main(self) -> None:
        _here.context = self
        try:
            self._set_up()
            self.loop.call_soon(self._started.set)
            self.loop.run_forever()
        except BaseException as error:
            # SystemExit and KeyboardInterrupt come out of a loop; anything else is the loop's own fault.
            self.error = error
            self.loop.call_exception_handler({"message": f"{self!r} died", "exception": error})
        finally:
            self._tear_down()
            self._started.set()

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
        intake.close(self.error)
        try:
            if self.error is not None:
                for job in list(intake.running):
                    job._settle(None, self.error)
            loop.run_until_complete(self._end_tasks())
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
            if self._on_stop is not None:
                self._on_stop(self)
        except BaseException as error:
            loop.call_exception_handler({"message": f"{self!r} did not end cleanly", "exception": error})
        finally:
            self._last = {name: self.statistics()[name] for name in ("wakes", "sleeps", "busy")}
            self._cpu_clock = 0
            for job in list(intake.running):
                self.abandoned.append(job)
                job._settle(None, RuntimeError(f"abandoned when {self.name} stopped"))
            loop.close()

    async def _end_tasks(self) -> None:
        """Cancel all tasks, those too that others start while they end."""
        deadline = time.monotonic() + self._grace
        asked: set[asyncio.Task[Any]] = {asyncio.current_task()}  # type: ignore[arg-type]
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in tasks - asked:
                task.cancel()
            asked |= tasks
            left = deadline - time.monotonic()
            if left <= 0 and asked >= tasks:
                await asyncio.sleep(0)  # they see their cancellation, if no more
                break
            await asyncio.wait(tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)

    def statistics(self) -> dict[str, Any]:
        """Jobs since the start, jobs now; of the loop: wakes, sleeps, and the busy fraction of one core."""
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
