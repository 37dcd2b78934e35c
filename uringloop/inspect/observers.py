"""Observers: the registry of this process's loops and of the observers that inspect them. A loop's monitor
(`_core/loop/monitor.pyx`) records only what an observer has requested, and nothing after the last observer has ended.
Any thread may make and end an observer."""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

from uringloop._core.loop.monitor import LoopMonitor

# What URINGLOOP_DEBUG asks for: names, separated by commas. Read once, so that a loop costs nothing.
_ASKED = {name for name in os.environ.get("URINGLOOP_DEBUG", "").split(",") if name}
if _ASKED - {"stuck"}:
    raise ValueError(f"URINGLOOP_DEBUG takes 'stuck', not {os.environ['URINGLOOP_DEBUG']!r}")

_guard = threading.RLock()  # reentrant: the garbage collector may run inside, and end a loop
_loops: weakref.WeakSet[Any] = weakref.WeakSet()
_observers: list[Observer] = []
_numbers = itertools.count(1)


class Observer:
    """Observes one loop, or with None all present and future loops, until `end`. Calls `begin` with each loop and its
    monitor, before the monitor records anything for it."""

    def __init__(
        self, flags: int, loop: Any = None, begin: Callable[[Any, LoopMonitor], object] | None = None
    ) -> None:
        self.flags = flags
        self._loop = None if loop is None else weakref.ref(loop)
        self._begin = begin
        with _guard:
            _observers.append(self)
            try:
                for each in loops():
                    self._cover(each)
            except BaseException:
                self.end()
                raise

    def covers(self, loop: Any) -> bool:
        return self._loop is None or self._loop() is loop

    def _cover(self, loop: Any) -> None:
        if self.covers(loop):
            if self._begin is not None:
                if loop.monitor is None:
                    loop._set_monitor_flags(0)  # makes the monitor
                self._begin(loop, loop.monitor)
            _apply_flags(loop)

    def end(self) -> None:
        """End the observation; may be called more than once."""
        with _guard:
            if self in _observers:
                _observers.remove(self)
                for each in loops():
                    if self.covers(each):
                        _apply_flags(each)

    def __enter__(self) -> Observer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()


def _apply_flags(loop: Any) -> None:
    flags = 0
    for look in _observers:
        if look.covers(loop):
            flags |= look.flags
    if flags or loop.monitor is not None:
        loop._set_monitor_flags(flags)


def loops() -> list[Any]:
    """The loops of this process that are not closed, the oldest first."""
    with _guard:
        found = [loop for loop in _loops if not loop.is_closed()]
    return sorted(found, key=lambda loop: int(loop._number))


def register_loop(loop: Any) -> int:
    """Register a new loop; return its number."""
    with _guard:
        number = next(_numbers)
        loop._number = number
        _loops.add(loop)
        for look in _observers:
            look._cover(loop)
    if os.environ.get("URINGLOOP_INSPECT", "0") not in ("", "0"):
        from uringloop.inspect.server import serve_as_asked

        serve_as_asked()
    if "stuck" in _ASKED:
        from uringloop.inspect.stuck import find_as_asked

        find_as_asked()
    return number


def _after_fork_in_child() -> None:
    # The observers were threads of the parent.
    global _guard
    _guard = threading.RLock()
    _observers.clear()
    for loop in loops():
        _apply_flags(loop)


os.register_at_fork(after_in_child=_after_fork_in_child)
