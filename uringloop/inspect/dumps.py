"""Dumps: where each loop and each thread of this process is now, and who waits for whom. The inspector's thread makes
one, also while loops are stuck: it gives each loop a callback, and a loop that doesn't run it in time is blocked."""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

from uringloop.inspect.frames import (
    called_at,
    is_call_without_arguments,
    is_in,
    is_own,
    own_place,
    place,
    stack_below,
)
from uringloop.inspect.observers import loops
from uringloop.inspect.operations import operations
from uringloop.inspect.waits import Waits
from uringloop.version import __version__

FORMAT = 1
_LOOP = os.path.join("uringloop", "loop.py")
_ENDLESS = ("acquire", "get", "join")  # without arguments, they wait until another thread ends the wait


def dump(seconds: float) -> dict[str, Any]:
    """Describe the process. A loop that doesn't run a callback within `seconds` counts as blocked."""
    waits = Waits()
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    found = [loop for loop in loops() if loop._thread_id]
    first = [_Probe(loop, None if gil else waits) for loop in found]
    _await(first, seconds)
    second = [_Probe(each.loop, None) for each in first if each.answered.is_set()]
    _await(second, seconds)
    frames = {number: stack_below(frame) for number, frame in sys._current_frames().items()}
    if gil:
        for loop in loops():
            waits.add_loop(loop)
    threads = _threads(frames, {loop._thread_id: loop for loop in found})
    _link_executors(waits, frames)
    waits.finish()
    return {
        "format": FORMAT,
        "pid": os.getpid(),
        "uringloop": __version__,
        "python": platform.python_version(),
        "command": sys.argv,
        "how": "inspector",
        "loops": [_loop(loop, first, frames, gil) for loop in loops()],
        "threads": threads,
        "tasks": waits.tasks,
        "tasks_left_out": waits.left_out,
        "primitives": waits.primitives,
        "still": _is_still(first, second, threads),
    }


class _Probe:
    """A callback in a loop: whether the loop ran it, and what the loop had to do then."""

    def __init__(self, loop: Any, waits: Waits | None) -> None:
        self.loop = loop
        self.answered = threading.Event()
        self.begun = time.monotonic()
        self.counts: dict[str, Any] = {}
        self.sources = 0  # operations in the kernel, and watched descriptors, that may wake a task
        self._waits = waits
        self._guard = threading.Lock()
        try:
            loop.call_soon_threadsafe(self._answer)
        except RuntimeError:  # closed meanwhile
            self.answered.set()

    def _answer(self) -> None:
        with self._guard:
            waits, self._waits = self._waits, None
        self.counts = self.loop._counts()
        self.sources = sum(not _is_loops_own(each) for each in operations(self.loop)) + len(
            self.loop._transports
        )
        if waits is not None:
            with _one_loop_at_a_time:
                waits.add_loop(self.loop)
        self.answered.set()

    def give_up(self) -> None:
        with self._guard:
            self._waits = None


_one_loop_at_a_time = threading.Lock()


def _await(probes: list[_Probe], seconds: float) -> None:
    end = time.monotonic() + seconds
    for probe in probes:
        probe.answered.wait(max(0.0, end - time.monotonic()))
        probe.give_up()


def _is_loops_own(operation: Any) -> bool:
    """Whether an operation serves the loop itself: its wakeup, and the descriptor by which signals arrive."""
    callback = getattr(operation.owner, "_callback", None)
    owner = type(getattr(callback, "__self__", None))
    return operation.owner is None or (owner.__module__, owner.__name__) == (
        "uringloop.net.signals",
        "Signals",
    )


def _loop(loop: Any, probes: list[_Probe], frames: dict[int, list[FrameType]], gil: bool) -> dict[str, Any]:
    probe = next((each for each in probes if each.loop is loop), None)
    answered = probe is None or probe.answered.is_set()
    stack = _above_the_loop(frames.get(loop._thread_id or 0, []))
    running = loop.monitor.running() if loop.monitor is not None and not answered else None
    since = running[1] / 1e9 if running is not None else time.monotonic() if probe is None else probe.begun
    return {
        "number": loop._number,
        "engine": loop._engine_name,
        "state": "stopped" if probe is None else "running" if answered else "blocked",
        "thread": loop._thread_id or None,
        "blocked_seconds": None if answered else time.monotonic() - since,
        "stack": [] if answered else [place(frame) for frame in stack],
        "at": None if answered else own_place([place(frame) for frame in stack]),
        "calls": None if answered or not stack else _called(stack),
        "task": None if answered or not gil else _current(loop),
    }


def _current(loop: Any) -> str | None:
    task = asyncio.current_task(loop)
    return None if task is None else task.get_name()


def _called(stack: list[FrameType]) -> str | None:
    """What the program's own innermost frame calls."""
    at = own_place([place(frame) for frame in stack])
    if at is None or not is_own(at["file"]):
        return None
    return next((called_at(each) for each in reversed(stack) if place(each) == at), None)


def _above_the_loop(stack: list[FrameType]) -> list[FrameType]:
    for at in range(len(stack) - 1, -1, -1):
        code = stack[at].f_code
        if code.co_filename.endswith(_LOOP) and code.co_name == "_run_alone":
            return stack[at + 1 :]
    return stack


def _threads(frames: dict[int, list[FrameType]], running: dict[int, Any]) -> list[dict[str, Any]]:
    known = {thread.ident: thread for thread in threading.enumerate()}
    found = []
    for number, stack in frames.items():
        if number == threading.get_ident() or _is_inspectors(stack):
            continue
        thread, loop = known.get(number), running.get(number)
        places = [place(frame) for frame in stack]
        found.append(
            {
                "ident": number,
                "native_id": None if thread is None else thread.native_id,
                "name": None if thread is None else thread.name,
                "loop": None if loop is None else loop._number,
                "state": "loop" if loop is not None else _state(stack),
                "stack": places,
                "at": own_place(places),
                "calls": _called(stack) if stack else None,
            }
        )
    return found


def _is_inspectors(stack: list[FrameType]) -> bool:
    own = ("inspect/server.py", "inspect/stuck.py", "inspect/watchdogs.py")
    return any(frame.f_code.co_filename.endswith(own) for frame in stack)


def _state(stack: list[FrameType]) -> str:
    """idle: a worker without work; waiting: until another thread ends the wait, without a limit; else running."""
    frame = stack[-1]
    name = frame.f_code.co_name
    if is_in(frame, "concurrent/futures/thread.py") and name == "_worker":
        return "idle"
    if is_in(frame, "threading.py"):
        unlimited = frame.f_locals.get("timeout", -1) in (None, -1)
        ends = name in ("wait", "join", "_wait_for_tstate_lock", "_shutdown") and unlimited
        return "waiting" if ends else "running"
    called = called_at(frame)
    waits = called is not None and (called.rpartition(".")[2] in _ENDLESS or _is_with(frame, called))
    return "waiting" if waits and is_call_without_arguments(frame) else "running"


def _is_with(frame: FrameType, called: str) -> bool:
    """Whether a frame waits in the `__enter__` of a `with` of a lock: what it calls is a name and no call."""
    import ast
    import linecache

    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    try:
        tree = ast.parse(line + " pass").body[0] if line.endswith(":") else None
    except SyntaxError:
        return False
    return isinstance(tree, ast.With) and any(ast.unparse(each.context_expr) == called for each in tree.items)


def _link_executors(waits: Waits, frames: dict[int, list[FrameType]]) -> None:
    """Tell for each task that waits for an executor which thread works for it."""
    for number, stack in frames.items():
        for frame in stack:
            if is_in(frame, "concurrent/futures/thread.py") and frame.f_code.co_name == "run":
                call = getattr(frame.f_locals.get("self"), "future", None)
                wait = waits.executor_calls.get(id(call))
                if wait is not None:
                    wait["thread"] = number


def _is_still(first: list[_Probe], second: list[_Probe], threads: list[dict[str, Any]]) -> bool:
    """Whether nothing in this process can wake a task: no callback ran between the two probes but the second probe, no
    loop has a timer or waits for the kernel, no thread runs, and no signal has a handler of the program's own."""
    if len(second) != len(first) or not all(each.answered.is_set() for each in second):
        return False
    if any(_has_more_to_do(*each) for each in zip(first, second, strict=True)):
        return False
    if any(thread["state"] == "running" for thread in threads):
        return False
    return not any(
        callable(signal.getsignal(each)) and each != signal.SIGINT for each in signal.valid_signals()
    )


def _has_more_to_do(before: _Probe, after: _Probe) -> bool:
    if not before.counts or not after.counts or after.sources:
        return True
    ran = after.counts["callbacks"] - before.counts["callbacks"]
    ran -= (
        after.counts["completed"] - before.counts["completed"]
    )  # of the operation that wakes the loop for the probe
    return ran > 1 or any(after.counts[name] for name in ("timers", "ready", "waiting"))
