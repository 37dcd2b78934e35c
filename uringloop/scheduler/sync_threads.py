"""SyncThreads: the threads that run the functions of run_sync. Owns the threads, and knows which jobs run."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from uringloop.scheduler.job import Job
from uringloop.sync.wait_group import WaitGroup

_here = threading.local()


class SyncThreads:
    def __init__(self, name: str) -> None:
        self._name = name
        self._guard = threading.Lock()  # guards the creation of the threads; never held during a wait
        self._threads: ThreadPoolExecutor | None = None
        self._closed = False
        self._running: set[Job[Any]] = set()
        self._busy = WaitGroup()

    @property
    def is_current_thread(self) -> bool:
        """Whether the calling thread is one of these threads."""
        return getattr(_here, "sync_threads", None) is self

    def run(self, job: Job[Any], function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Run the function in a thread, and settle the job with its outcome. Raises RuntimeError once closed."""
        cvars = contextvars.copy_context()
        with self._guard:
            if self._closed:
                raise RuntimeError("the scheduler takes no more functions")
            if self._threads is None:
                self._threads = ThreadPoolExecutor(thread_name_prefix=f"{self._name}-sync")
            done = self._threads.submit(self._run, job, cvars, function, args)
        done.add_done_callback(lambda ran: job.cancel() if ran.cancelled() else None)

    def _run(
        self, job: Job[Any], cvars: contextvars.Context, function: Callable[..., Any], args: tuple[Any, ...]
    ) -> None:
        _here.sync_threads = self
        if not job._begin_without_a_task():
            return
        self._busy.begin()
        self._running.add(job)
        try:
            value = cvars.run(function, *args)
        except BaseException as error:
            job._settle(None, error)
        else:
            job._settle(value, None)
        finally:
            self._running.discard(job)
            self._busy.end()

    def close(self) -> None:
        """Start no more functions, and cancel those that wait for a thread."""
        with self._guard:
            self._closed = True
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def wait(self, timeout: float) -> list[Job[Any]]:
        """Wait for the running functions. Fail the jobs of those that don't end in time, and return these jobs."""
        if self._busy.wait_sync(timeout):
            if self._threads is not None:
                self._threads.shutdown(wait=True)  # doesn't block: the threads are idle
            return []
        error = RuntimeError(f"abandoned: its thread was held up when {self._name} was to stop")
        return [job for job in list(self._running) if job._settle(None, error)]
