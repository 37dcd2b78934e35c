"""Workers: threads for calls that may block. Owns the threads and the queue of jobs.

A few threads do all the jobs. Another thread is started only when jobs wait and no thread has taken one for a while:
so a call that hangs in a filesystem, or syncs for a minute, doesn't hold up the others, and a burst of short jobs
doesn't start a thread for each. The threads are daemons: the interpreter's end doesn't wait for a call that hangs.
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
PATIENCE = 0.02  # seconds in which no thread takes a job, before another thread is started
KEEP = 10.0  # seconds that an idle thread waits for a job before it ends
WAIT = object()


class Workers(Executor):
    def __init__(self, name: str) -> None:
        self._name = name
        self.pid = os.getpid()  # in a forked child, the threads don't exist
        self._jobs: SimpleQueue[Any] = SimpleQueue()  # None: the end
        self._guard = threading.Lock()
        # Under the guard:
        self._threads: set[threading.Thread] = set()
        self._idle = 0  # waiting threads, less the jobs in the queue for them
        self._watched = False
        self._closed = False
        self._ended = threading.Event()
        self._taken = 0  # counted by all threads without a lock; a lost count only starts a thread too many

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
            # Don't keep references to the job while waiting for the next one.
            del job, future, function, args, kwargs

    def _next(self) -> Any:
        """Wait for a job and return it; None if the thread has to end."""
        while True:
            with self._guard:
                try:
                    job = self._jobs.get_nowait()
                except Empty:
                    job = WAIT
                    self._idle += 1  # under the guard: the next job submitted counts on this waiting thread
            if job is WAIT:
                try:
                    job = self._jobs.get(timeout=KEEP)
                except Empty:
                    with self._guard:
                        if self._idle:
                            self._idle -= 1
                            self._threads.discard(threading.current_thread())
                            return None
                    continue  # a job for this thread was submitted meanwhile
            if job is None:
                self._jobs.put(None)  # for the other threads
                with self._guard:
                    self._threads.discard(threading.current_thread())
            return job

    def _watch(self) -> None:
        """While jobs wait: start another thread whenever no thread has taken a job for a while."""
        while True:
            before = self._taken
            self._ended.wait(PATIENCE)
            with self._guard:
                if self._closed or self._jobs.empty():
                    self._watched = False
                    return
                if self._taken == before and len(self._threads) < MOST:
                    with suppress(RuntimeError, OSError):  # the system allows no more threads for now
                        self._start()
