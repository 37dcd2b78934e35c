"""Looking: which loops there are in this process, and who looks at them. A loop is told to tell (`_core/loop/watch.pyx`)
what somebody wants to know, and nothing once nobody does. Any thread may begin and end to look."""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

from uringloop._core.loop.watch import Watch

_guard = threading.RLock()  # a collection inside may end a loop
_loops: weakref.WeakSet[Any] = weakref.WeakSet()
_looks: list[Look] = []
_numbers = itertools.count(1)


class Look:
    """Somebody looks, at one loop or (None) at all there are and will be, until `end`. `begin` is called with each of
    them and its watch, before it tells anything."""

    def __init__(
        self, flags: int, loop: Any = None, begin: Callable[[Any, Watch], object] | None = None
    ) -> None:
        self.flags = flags
        self._loop = None if loop is None else weakref.ref(loop)
        self._begin = begin
        with _guard:
            _looks.append(self)
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
                if loop.watch is None:
                    loop._look(0)  # makes one
                self._begin(loop, loop.watch)
            _tell(loop)

    def end(self) -> None:
        """Once or more often."""
        with _guard:
            if self in _looks:
                _looks.remove(self)
                for each in loops():
                    if self.covers(each):
                        _tell(each)

    def __enter__(self) -> Look:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()


def _tell(loop: Any) -> None:
    flags = 0
    for look in _looks:
        if look.covers(loop):
            flags |= look.flags
    if flags or loop.watch is not None:
        loop._look(flags)


def loops() -> list[Any]:
    """Those of this process that are not closed, the oldest first."""
    with _guard:
        found = [loop for loop in _loops if not loop.is_closed()]
    return sorted(found, key=lambda loop: int(loop._number))


def made(loop: Any) -> int:
    """A new loop: its number."""
    with _guard:
        number = next(_numbers)
        loop._number = number
        _loops.add(loop)
        for look in _looks:
            look._cover(loop)
    if os.environ.get("URINGLOOP_INSPECT", "0") not in ("", "0"):
        from uringloop.inspect.server import serve_as_asked

        serve_as_asked()
    return number


def _after_fork_in_child() -> None:
    # Who looked were threads of the parent.
    global _guard
    _guard = threading.RLock()
    _looks.clear()
    for loop in loops():
        _tell(loop)


os.register_at_fork(after_in_child=_after_fork_in_child)
