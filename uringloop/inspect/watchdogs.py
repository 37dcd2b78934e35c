"""The watchdog: a thread that reports a slow callback with its stack while the callback still runs. It can't report a
callback that never releases the GIL, because no other Python code runs then."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from uringloop._core.loop.monitor import TIMES
from uringloop.inspect.observers import Observer, loops
from uringloop.inspect.snapshots import running

logger = logging.getLogger("uringloop")


@dataclass(frozen=True, slots=True)
class SlowCallback:
    """What a watchdog reports."""

    loop: Any
    name: str  # of the function; for a task, of its coroutine
    detail: str | None  # for a task, the task's name
    seconds: float  # how long it has run until now
    stack: list[str]  # its stack, formatted, the innermost call last

    def __str__(self) -> str:
        what = self.name if self.detail is None else f"{self.name} ({self.detail})"
        return (
            f"{what} has been running for {self.seconds:.3f} seconds in {self.loop!r}, and is at:\n"
            + "\n".join(self.stack)
        )


def log(slow: SlowCallback) -> None:
    logger.warning("%s", slow)


class Watchdog:
    """What `watchdog` returns. Watches until `stop`; as a context manager, until the end of the block."""

    def __init__(self, loop: Any, seconds: float, report: Callable[[SlowCallback], object]) -> None:
        self.seconds = seconds
        self._report = report
        self._watched = loop
        self._reported: dict[int, int] = {}  # loop number: the last callback reported
        self._ended = threading.Event()
        self._observer = Observer(TIMES, loop)
        self._thread = threading.Thread(target=self._watch, name="uringloop watchdog", daemon=True)
        self._thread.start()

    def __enter__(self) -> Watchdog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop watching; may be called more than once."""
        self._ended.set()
        self._observer.end()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def look(self) -> None:
        """Report each callback that has run for too long and was not yet reported. The thread calls this regularly."""
        for loop in loops() if self._watched is None else [self._watched]:
            now = loop.monitor.running() if loop.monitor is not None else None
            if now is None or self._reported.get(loop._number) == now[0]:
                continue
            found = running(loop, self.seconds)
            if found is None or not found["stack"]:
                continue  # it has ended, or has not run for that long
            self._reported[loop._number] = found["begun"]
            slow = SlowCallback(loop, found["name"], found["detail"], found["seconds"], found["stack"])
            try:
                self._report(slow)
            except Exception:
                logger.exception("The report of a slow callback failed")

    def _watch(self) -> None:
        while not self._ended.wait(self.seconds / 2):
            self.look()


def watchdog(
    loop: Any = None, seconds: float = 0.1, report: Callable[[SlowCallback], object] = log
) -> Watchdog:
    """Report each callback that runs for `seconds` or longer, once, while it still runs.

    Watches `loop`, or with None all present and future loops. Reports go to the logger "uringloop", or to `report`,
    which the watchdog's thread calls."""
    if not seconds > 0:
        raise ValueError(f"seconds must be more than 0, not {seconds!r}")
    if loop is not None and loop.is_closed():
        raise RuntimeError("Event loop is closed")
    return Watchdog(loop, seconds, report)
