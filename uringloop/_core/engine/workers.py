"""Workers: threads for calls that may block. Owns the threads and the jobs that none has taken yet.

A few threads do what there is to do. Another one is started only when jobs wait and none of the threads has taken one
for a while: what hangs in a filesystem, or syncs for a minute, holds up nobody else, and a burst of short jobs does
not start a thread for each. The threads are daemons: at the interpreter's end, nobody waits for what hangs.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

FEW = min(32, (os.cpu_count() or 1) + 4)
MOST = 1000
PATIENCE = 0.02  # seconds without a job taken, before another thread is started
KEEP = 10.0  # seconds that a thread waits for something to do
WAIT = object()


class Workers(Executor):
    def __init__(self, name: str) -> None:
        self._name = name
        self.pid = os.getpid()  # a forked child has none of the threads
        self._jobs: SimpleQueue[Any] = SimpleQueue()  # None: the end
        self._guard = threading.Lock()
        # Under the guard:
        self._threads: set[threading.Thread] = set()
        self._idle = 0  # threads that wait and were promised nothing
        self._watched = False
        self._closed = False
        self._ended = threading.Event()
        self._taken = 0  # counted by every thread; one that gets lost starts a thread too many

    def __repr__(self) -> str:
        return f"<Workers {self._name}: {len(self._threads)} threads, {self._jobs.qsize()} jobs wait>"

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with self._guard:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            if self._idle:
                self._idle -= 1
            elif len(self._threads) < FEW:
                self._start()
            elif not self._watched:
                self._watched = True
                threading.Thread(target=self._watch, name=f"{self._name}-watch", daemon=True).start()
            self._jobs.put((future, function, args, kwargs))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if self.pid != os.getpid():
            return
        with self._guard:
            self._closed = True
            self._ended.set()
            while cancel_futures:
                try:
                    job = self._jobs.get_nowait()
                except Empty:
                    break
                if job is not None:
                    job[0].cancel()
            self._jobs.put(None)
            threads = list(self._threads)
        if wait:
            for thread in threads:
                thread.join()

    def _start(self) -> None:
        thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        self._threads.add(thread)
        try:
            thread.start()
        except BaseException:
            self._threads.discard(thread)
            if not self._threads:
                raise

    def _work(self) -> None:
        while True:
            job = self._next()
            if job is None:
                return
            self._taken += 1
            future, function, args, kwargs = job
            if future.set_running_or_notify_cancel():
                try:
                    result = function(*args, **kwargs)
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(result)
                    del result
            # Nothing of it is kept until the next one comes.
            del job, future, function, args, kwargs

    def _next(self) -> Any:
        """A job, or None for the end of the thread."""
        while True:
            with self._guard:
                try:
                    job = self._jobs.get_nowait()
                except Empty:
                    job = WAIT
                    self._idle += (
                        1  # under the guard: what is submitted from now on is promised to somebody who waits
                    )
            if job is WAIT:
                try:
                    job = self._jobs.get(timeout=KEEP)
                except Empty:
                    with self._guard:
                        if self._idle:
                            self._idle -= 1
                            self._threads.discard(threading.current_thread())
                            return None
                    continue  # a job was promised meanwhile
            if job is None:
                self._jobs.put(None)  # for the others
                with self._guard:
                    self._threads.discard(threading.current_thread())
            return job

    def _watch(self) -> None:
        """While jobs wait: another thread, if none of those there are has taken one."""
        while True:
            before = self._taken
            self._ended.wait(PATIENCE)
            with self._guard:
                if self._closed or self._jobs.empty():
                    self._watched = False
                    return
                if self._taken == before and len(self._threads) < MOST:
                    with suppress(RuntimeError, OSError):  # no more threads are to be had, for now
                        self._start()
