"""Snapshots: what the loops of this process do at this moment, as JSON values. Any thread can take one at once, even if
a loop is stuck; so nothing here waits for a loop, unless Python runs without the GIL."""

from __future__ import annotations

import asyncio
import collections
import linecache
import os
import platform
import resource
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from uringloop._core.loop.monitor import name_of
from uringloop.inspect.hints import hints
from uringloop.inspect.observers import loops
from uringloop.inspect.statistics import thread_cpu_seconds
from uringloop.version import __version__

T = TypeVar("T")

FORMAT = 1
STUCK = 0.1  # seconds after which a snapshot shows the stack of a running callback
PATIENCE = 0.5  # seconds to wait for a loop whose tasks other threads can't read
_OWN = str(Path(__file__).parents[1] / "loop.py")


def snapshot(tasks: int = 100) -> dict[str, Any]:
    """Describe all loops that are not closed, with at most `tasks` tasks of each.

    `slept_seconds`, `slowest` and `operations` are filled in only while an observer is active: `uringloop top`, a
    watchdog or a trace."""
    found: dict[str, Any] = {
        "format": FORMAT,
        "pid": os.getpid(),
        "time": time.monotonic(),
        "uringloop": __version__,
        "python": platform.python_version(),
        "command": sys.argv,
        "descriptors": _descriptors(),
        "loops": [_loop(loop, tasks) for loop in loops()],
    }
    return found | {"hints": hints(found)}


def _descriptors() -> dict[str, int] | None:
    """How many descriptors are open, and how many may be (-1: any number); None if /proc does not tell."""
    try:
        count = len(os.listdir("/proc/self/fd")) - 1  # without that of the listing
    except OSError:
        return None
    return {"open": count, "limit": resource.getrlimit(resource.RLIMIT_NOFILE)[0]}


def _loop(loop: Any, tasks: int) -> dict[str, Any]:
    thread = loop._thread_id
    counts = loop._counts()
    found: dict[str, Any] = {
        "number": loop._number,
        "engine": loop._engine_name,
        "state": "running" if thread else "stopped",
        "thread": _thread_name(thread),
        "debug": loop.get_debug(),
        "statistics": {**counts, "transports": len(loop._transports)},
        "cpu_seconds": thread_cpu_seconds(thread) if thread else 0.0,
        "asleep": False,
        "slept_seconds": None,
        "running": None,
        "slowest": [],
        "operations": None,
        "tasks": _tasks(loop, tasks),
    }
    if loop.monitor is not None:
        slept, asleep = loop.monitor.slept()
        kinds = collections.Counter(kind for _, kind, _ in loop.monitor.operations())
        found |= {
            "asleep": asleep,
            "slept_seconds": slept / 1e9,
            "running": running(loop),
            "slowest": _slowest(loop),
            "operations": dict(kinds.most_common()),
        }
    return found


def _thread_name(ident: int | None) -> str | None:
    for thread in threading.enumerate():
        if ident is not None and thread.ident == ident:
            return thread.name
    return None


def running(loop: Any, least: float | None = None) -> dict[str, Any] | None:
    """The running callback, with its stack if it has run for at least `least` seconds (default: STUCK)."""
    now = loop.monitor.running()
    if now is None:
        return None
    begun, since, called, kind = now
    name, detail = name_of(called, kind)
    seconds = time.monotonic() - since / 1e9
    stack = None
    if seconds >= (STUCK if least is None else least):
        stack = stack_of(loop)
        after = loop.monitor.running()
        if after is None or after[0] != begun:
            return None  # the stack belongs to another callback
    return {"begun": begun, "seconds": seconds, "name": name, "detail": detail, "stack": stack}


def stack_of(loop: Any) -> list[str]:
    """The stack of the loop's thread, without the loop's own frames, the innermost call last."""
    frame = sys._current_frames().get(loop._thread_id or 0)
    if frame is None:
        return []
    stack = traceback.StackSummary.extract(traceback.walk_stack(frame), lookup_lines=False)
    stack.reverse()
    for at in range(len(stack) - 1, -1, -1):
        if stack[at].filename == _OWN and stack[at].name in ("_run_alone", "_run_once"):
            del stack[: at + 1]
            break
    linecache.checkcache()
    return [line.rstrip("\n") for line in stack.format()]


def _slowest(loop: Any) -> list[dict[str, Any]]:
    now = time.monotonic_ns()
    return [
        {"seconds": took / 1e9, "ago_seconds": (now - began - took) / 1e9, "name": name, "detail": detail}
        for took, began, name, detail in loop.monitor.slowest_callbacks()
    ]


def _tasks(loop: Any, most: int) -> dict[str, Any] | None:
    """The loop's tasks; None if they could not be read in time."""
    if getattr(sys, "_is_gil_enabled", lambda: True)() or loop._thread_id in (None, threading.get_ident()):
        return _look_at_tasks(loop, most)
    return _in_loop(loop, lambda: _look_at_tasks(loop, most))


def _in_loop(loop: Any, function: Callable[[], T]) -> T | None:
    answer: Future[T] = Future()

    def answered() -> None:
        if answer.set_running_or_notify_cancel():
            try:
                answer.set_result(function())
            except Exception as error:
                answer.set_exception(error)

    try:
        loop.call_soon_threadsafe(answered)
        return answer.result(PATIENCE)
    except (RuntimeError, TimeoutError):  # closed meanwhile, or stuck
        answer.cancel()
        return None


def _look_at_tasks(loop: Any, most: int) -> dict[str, Any] | None:
    try:
        found = list(asyncio.all_tasks(loop))
    except RuntimeError:  # the set of tasks keeps changing while all_tasks() copies it
        return None
    shown = sorted(found, key=lambda task: task.get_name())[:most]
    return {"count": len(found), "shown": [_task(task) for task in shown]}


def _task(task: asyncio.Task[Any]) -> dict[str, Any]:
    coroutine = task.get_coro()
    return {
        "name": task.get_name(),
        "coroutine": getattr(coroutine, "__qualname__", None) or type(coroutine).__name__,
        "stack": [_place(frame) for frame in await_chain(coroutine)],
    }


def await_chain(awaited: Any) -> list[FrameType]:
    """The frames in which a coroutine is suspended, from the outermost to the innermost."""
    frames: list[FrameType] = []
    while awaited is not None and len(frames) < 100:
        for frame, further in (
            ("cr_frame", "cr_await"),
            ("gi_frame", "gi_yieldfrom"),
            ("ag_frame", "ag_await"),
        ):
            found = getattr(awaited, frame, None)
            if found is not None:
                frames.append(found)
                awaited = getattr(awaited, further, None)
                break
        else:
            break
    return frames


def _place(frame: FrameType) -> str:
    code = frame.f_code
    return f"{code.co_filename}:{frame.f_lineno} in {code.co_name}"
