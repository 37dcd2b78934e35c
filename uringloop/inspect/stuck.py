"""The search for what is stuck: tasks that wait for each other in a circle, and tasks that wait for what no live object
can set. `find_stuck` looks once; a `StuckFinder` looks regularly, and reports each finding once."""

from __future__ import annotations

import asyncio
import functools
import linecache
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from uringloop._core.lifetime.reachability import unreachable
from uringloop.inspect.frames import awaits_what_it_makes, chain_of
from uringloop.inspect.observers import loops
from uringloop.inspect.snapshots import _in_loop
from uringloop.inspect.verdicts import Named, cycles_of, deadlock, ends_of, spot
from uringloop.inspect.waits import Waits, _tasks_of

logger = logging.getLogger("uringloop")

MOST_TASKS = 20_000
SHARE = 20  # a StuckFinder looks for at most one part in so many of the time
_STACKS = 3  # how many tasks of a finding are shown with their stacks
_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()


@dataclass(frozen=True, slots=True)
class StuckTask:
    """A task of a finding, and where it is suspended."""

    name: str
    loop: int  # its number
    stack: list[str]  # formatted, the innermost call last


@dataclass(frozen=True, slots=True)
class Stuck:
    """What `find_stuck` found."""

    kind: str  # "deadlock", or "unreachable": no live object can set what the tasks wait for
    text: str  # who waits for what, and where
    tasks: list[StuckTask]

    def __str__(self) -> str:
        lines = [self.text]
        for task in self.tasks[:_STACKS]:
            lines += [
                f"Task '{task.name}' of loop {task.loop} is suspended at (most recent call last):",
                *task.stack,
            ]
        if len(self.tasks) > _STACKS:
            lines.append(f"and {len(self.tasks) - _STACKS} more tasks")
        return "\n".join(lines)


def find_stuck() -> list[Stuck]:
    """Find deadlocks, and tasks that only a cancellation can still wake, on all loops of this process.

    It finds nothing that a timeout is going to end, and nothing that waits for the kernel, a timer or a thread. Any
    thread may call this."""
    return [stuck for stuck, _ in _find()]


def _find() -> list[tuple[Stuck, list[asyncio.Task[Any]]]]:
    lost = _lost()  # first: what this thread knows of the tasks' futures keeps them reachable
    before = _in_each_loop(_waiting)
    waits = Waits(MOST_TASKS)
    _in_each_loop(waits.add_loop)
    waits.finish()
    # A task that has the same future as before has waited all the time, and so have all of them at the same time.
    after = {id(task): waiter for task, waiter in _in_each_loop(_waiting)}
    same = {id(task) for task, waiter in before if after.get(id(task)) is waiter}
    return _findings(waits, [task for task in lost if id(task) in same], same)


def _lost() -> list[asyncio.Task[Any]]:
    if not _GIL:
        return []
    waiting = [task for loop in loops() for task in _tasks_of(loop) if _future_of(task) is not None]
    found = unreachable(waiting)
    return [task for task, is_lost in zip(waiting, found, strict=True) if is_lost]


def _future_of(task: asyncio.Task[Any]) -> Any:
    """What a suspended task waits for; None if it is about to run."""
    waiter = getattr(task, "_fut_waiter", None)
    done = getattr(waiter, "done", None)
    return None if done is None or done() else waiter


def _waiting(loop: Any) -> list[tuple[asyncio.Task[Any], Any]]:
    found = [(task, _future_of(task)) for task in _tasks_of(loop)]
    return [each for each in found if each[1] is not None]


def _in_each_loop(function: Callable[[Any], list[Any] | None]) -> list[Any]:
    """What the function returns for each loop, in one list; without the GIL, each loop's thread calls it."""
    found: list[Any] = []
    for loop in loops():
        if _GIL or loop._thread_id in (None, threading.get_ident()):
            found += _called(function, loop)
        else:
            found += _in_loop(loop, functools.partial(_called, function, loop)) or []
    return found


def _called(function: Callable[[Any], list[Any] | None], loop: Any) -> list[Any]:
    return function(loop) or []


def _findings(
    waits: Waits, lost: list[asyncio.Task[Any]], same: set[int]
) -> list[tuple[Stuck, list[asyncio.Task[Any]]]]:
    known = Named({"tasks": waits.tasks, "primitives": waits.primitives, "threads": []})
    found = []
    explained: set[int] = set()
    for circle in cycles_of(known):
        if all(id(waits.object(number)) in same for number in circle):
            verdict = deadlock(known, circle)
            explained |= known.behind(circle)
            if verdict["certain"]:
                found.append(_stuck(waits, known, "deadlock", verdict["text"], circle))
    numbers = {number for number in map(waits.number, lost) if number in known.tasks}
    roots: dict[Any, list[int]] = {}
    for number in sorted(numbers - explained):
        task = known.tasks[number]
        if (
            task["waits_for"] is not None
            and not set(known.needs(task)) & numbers
            and not _is_meant(known, waits, number)
        ):
            wait = task["waits_for"]
            line = None if wait["primitive"] else (task["at"] or {}).get("line")
            roots.setdefault((wait["primitive"], wait["kind"], line), []).append(number)
    for group in roots.values():
        found.append(_stuck(waits, known, "unreachable", _said(known, group), group))
    return found


def _is_meant(known: Named, waits: Waits, number: int) -> bool:
    """Whether a task waits until it is cancelled on purpose: the main task, a task that a timeout is going to end, and
    `await Future()`."""
    task = known.tasks[number]
    if task["main"] or any(known.tasks[each]["timed"] for each in known.behind([number])):
        return True
    _, frames, _ = chain_of(waits.object(number).get_coro())
    return awaits_what_it_makes(frames)


def _said(known: Named, group: list[int]) -> str:
    tasks = [known.tasks[number] for number in group]
    wait, count = tasks[0]["waits_for"], len(tasks)
    who = f"task '{tasks[0]['name']}' waits for" if count == 1 else f"{count} tasks wait for"
    behind = len(known.behind(group)) - count
    more = f"; {behind} more {'task waits' if behind == 1 else 'tasks wait'} for {'it' if count == 1 else 'them'}"
    return (
        f"{who} {known.what(tasks[0])}{spot(tasks[0]['at'])}, and no live object {ends_of(known, wait)}: only a "
        f"cancellation ends this wait{more if behind else ''}"
    )


def _stuck(
    waits: Waits, known: Named, kind: str, text: str, numbers: list[int]
) -> tuple[Stuck, list[asyncio.Task[Any]]]:
    tasks = [known.tasks[number] for number in numbers]
    shown = [
        StuckTask(task["name"], task["loop"], [_line(place) for place in task["stack"]]) for task in tasks
    ]
    return Stuck(kind, text, shown), [waits.object(number) for number in numbers]


def _line(place: dict[str, Any]) -> str:
    source = linecache.getline(place["file"], place["line"]).strip()
    return f'  File "{place["file"]}", line {place["line"]}, in {place["function"]}' + (
        f"\n    {source}" if source else ""
    )


def log(stuck: Stuck) -> None:
    logger.warning("%s", stuck)


class StuckFinder:
    """Looks for what is stuck every `seconds`, and reports each finding once, in a thread of its own, to `report`
    (default: to the logger "uringloop"). Looks until `stop`; as a context manager, until the end of the block."""

    def __init__(self, seconds: float = 5.0, report: Callable[[Stuck], object] = log) -> None:
        if not seconds > 0:
            raise ValueError(f"seconds must be more than 0, not {seconds!r}")
        self.seconds = seconds
        self._report = report
        self._reported: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="uringloop stuck finder", daemon=True)
        self._thread.start()

    def __enter__(self) -> StuckFinder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop looking; may be called more than once."""
        self._ended.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def look(self) -> None:
        """Report what was not yet reported. The thread calls this regularly."""
        for stuck, tasks in _find():
            if all(task in self._reported for task in tasks):
                continue
            self._reported.update(tasks)
            try:
                self._report(stuck)
            except Exception:
                logger.exception("The report of what is stuck failed")

    def _watch(self) -> None:
        pause = self.seconds
        while not self._ended.wait(pause):
            begun = time.thread_time()
            try:
                self.look()
            except Exception:  # a program may give its objects any attributes
                logger.exception("The search for what is stuck failed")
            pause = max(self.seconds, SHARE * (time.thread_time() - begun))


_finder: StuckFinder | None = None
_starting = threading.Lock()


def find_as_asked() -> None:
    """Start the finder of this process, for URINGLOOP_DEBUG=stuck, unless it runs."""
    global _finder
    with _starting:
        if _finder is None:
            _finder = StuckFinder()


def _after_fork_in_child() -> None:
    global _finder, _starting
    _finder, _starting = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork_in_child)
