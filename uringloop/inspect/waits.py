"""Waits: what each task waits for, and which tasks hold it, as far as suspended frames and the primitives themselves
tell. What they don't tell is left unknown."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any

from uringloop._core.handoff.waitlist import Waiter, Waitlist
from uringloop.inspect.frames import chain_of, is_entering, is_in, is_own, own_place, place

MOST_TASKS = 2000
_LOCKS = ("Lock", "Semaphore", "BoundedSemaphore", "Condition")
_LINES = {"Items": "Queue.get", "Room": "Queue.put", "ParkingLot": "Condition", "WaitGroup": "WaitGroup"}
_IO_FILES = ("asyncio/streams.py", "asyncio/base_events.py", "asyncio/subprocess.py", "asyncio/sslproto.py")


class Waits:
    """The tasks of some loops and the primitives that they wait for or hold, as JSON values."""

    def __init__(self, most: int = MOST_TASKS) -> None:
        self._most = most
        self.tasks: list[dict[str, Any]] = []
        self.primitives: list[dict[str, Any]] = []
        self.left_out = 0
        self.executor_calls: dict[int, dict[str, Any]] = {}  # the waits for them, by id of the call's future
        self._jobs: dict[int | None, int] = {}  # the tasks that run jobs
        self._ids: dict[int, int] = {}  # of tasks and primitives, by identity
        self._kept: list[Any] = []  # so that no identity is used twice
        self._gil = getattr(sys, "_is_gil_enabled", lambda: True)()

    def add_loop(self, loop: Any) -> None:
        """Without the GIL, only in the loop's own thread."""
        current = asyncio.current_task(loop)
        found = sorted(_tasks_of(loop), key=_name_order)
        room = max(0, self._most - len(self.tasks))
        self.left_out += len(found[room:])
        for task in found[:room]:
            self._add_task(task, loop._number, task is current)

    def finish(self) -> None:
        """Name the tasks' primitives by their holders and waiters, once every loop was added."""
        found = {each["id"]: each for each in self.primitives}
        for task in self.tasks:
            for number in task["holds"]:
                found[number]["holders"].append(task["id"])
            wait = task["waits_for"]
            if wait is not None and wait["primitive"] is not None:
                found[wait["primitive"]]["waiters"].append(task["id"])
        known = {task["id"] for task in self.tasks}
        for task in self.tasks:
            wait = task["waits_for"]
            if wait is not None:
                job = wait.pop("job", None)
                wait["tasks"] = [each for each in [*wait["tasks"], self._jobs.get(job)] if each in known]

    def number(self, what: Any) -> int:
        """The number of a task or primitive; 0 if it has none."""
        return self._ids.get(id(what), 0)

    def object(self, number: int) -> Any:
        return self._kept[number - 1]

    def _id(self, what: Any) -> int:
        if id(what) not in self._ids:
            self._kept.append(what)
            self._ids[id(what)] = len(self._kept)
        return self._ids[id(what)]

    def _add_task(self, task: asyncio.Task[Any], loop: int, running: bool) -> None:
        coroutine: Any = task.get_coro()
        coroutines, frames, awaited = ([], [], None) if running else chain_of(coroutine)
        stack = [place(frame) for frame in frames]
        waiter = getattr(task, "_fut_waiter", None)
        job = _job_of(task)
        if job is not None:
            self._jobs[self._id(job)] = self._id(task)
        lost = waiter is not None and self._gil and _is_lost(task, [*coroutines, awaited])
        wait = None if running or waiter is None else self._wait(waiter, frames, awaited)
        if wait is not None:
            wait["nothing_else_refers"] = lost and wait["kind"] == "Future"
        self.tasks.append(
            {
                "id": self._id(task),
                "name": task.get_name(),
                "loop": loop,
                "main": _is_main(task),
                "coroutine": getattr(coroutine, "__qualname__", None) or type(coroutine).__name__,
                "state": "running" if running else "ready" if waiter is None else "waiting",
                "timed": any(_is_timed(*each) for each in zip(coroutines, frames, strict=True)),
                "stack": stack,
                "at": own_place(stack),
                "waits_for": wait,
                "holds": [self._primitive(held, frames) for held in _held(coroutines, frames)],
            }
        )

    def _wait(self, waiter: Any, frames: list[FrameType], awaited: Any) -> dict[str, Any]:
        wait: dict[str, Any] = {
            "kind": "Future",
            "primitive": None,
            "tasks": [],
            "any": False,
            "thread": None,
            "seconds": None,
        }
        if isinstance(waiter, Waiter):
            if waiter.since_ns:
                wait["seconds"] = (time.monotonic_ns() - waiter.since_ns) / 1e9
            return wait | self._wait_in_line(waiter, frames)
        if isinstance(waiter, asyncio.Task):
            return wait | {"kind": "Task", "tasks": [self._id(waiter)]}
        if isinstance(waiter, asyncio.Future):
            children = getattr(waiter, "_children", None)  # of gather()
            if children is not None:
                return wait | {"kind": "Task", "tasks": self._pending(children)}
            call = _executor_call(waiter)
            if call is not None:
                wait["kind"] = "executor"
                self._kept.append(call)
                self.executor_calls[id(call)] = wait
                return wait
        elif not hasattr(waiter, "_asyncio_future_blocking"):
            return wait | {"kind": "io"}
        return wait | self._wait_in_library(frames, awaited)

    def _wait_in_line(self, waiter: Any, frames: list[FrameType]) -> dict[str, Any]:
        line = next((each for each in gc.get_referents(waiter) if isinstance(each, Waitlist)), None)
        if line is None:
            return {"kind": "Future"}
        if _class_of(line, "uringloop.scheduler") == "Job":
            return {"kind": "Job", "job": self._id(line)}
        kind = _LINES.get(type(line).__name__) or _class_of(line, "uringloop") or type(line).__name__
        return {"kind": kind, "primitive": self._primitive(line, frames)}

    def _wait_in_library(self, frames: list[FrameType], awaited: Any) -> dict[str, Any]:
        for frame in reversed(frames):
            name = frame.f_code.co_name
            if is_own(frame.f_code.co_filename):
                break
            if is_in(frame, "asyncio/queues.py") or is_in(frame, "asyncio/locks.py"):
                queue = next((each for each in frames if is_in(each, "asyncio/queues.py")), frame)
                what = queue.f_locals.get("self")
                kind = _class_of(what, "asyncio") or "Future"
                kind = f"Queue.{queue.f_code.co_name}" if is_in(queue, "asyncio/queues.py") else kind
                return {"kind": kind, "primitive": self._primitive(what, frames)}
            if is_in(frame, "asyncio/tasks.py"):
                if name == "sleep":
                    return {"kind": "timer"}
                if name == "_wait":
                    return {
                        "kind": "Task",
                        "tasks": self._pending(_in_order(frame.f_locals.get("fs", ()))),
                        "any": True,
                    }
                if name == "wait_for":
                    return {"kind": "Task", "tasks": self._pending([frame.f_locals.get("fut")])}
            if is_in(frame, "asyncio/taskgroups.py"):
                group = frame.f_locals.get("self")
                return {"kind": "Task", "tasks": self._pending(_in_order(getattr(group, "_tasks", ())))}
            if any(is_in(frame, each) for each in _IO_FILES) or "uringloop" in frame.f_code.co_filename:
                return {"kind": "io"}
        if type(awaited).__module__.startswith("uringloop."):
            return {"kind": "io"}
        return {}

    def _pending(self, futures: Any) -> list[int]:
        """The tasks among these futures, and among those that gather() put together, which have not ended."""
        found = []
        for each in tuple(futures):
            if isinstance(each, asyncio.Task) and not each.done():
                found.append(self._id(each))
            found += self._pending(getattr(each, "_children", ()))
        return found

    def _primitive(self, what: Any, frames: list[FrameType]) -> int:
        number = self._id(what)
        known = next((each for each in self.primitives if each["id"] == number), None)
        if known is None:
            kind = _class_of(what, "uringloop", "asyncio") or type(what).__name__
            kind = {"Items": "Queue", "Room": "Queue", "ParkingLot": "Condition"}.get(kind, kind)
            known = {"id": number, "kind": kind, "name": _given_name(what), "holders": [], "waiters": []}
            known["exclusive"] = kind == "Lock"
            self.primitives.append(known)
        if known["name"] is None:
            known["name"] = self._name(what, frames)
        return number

    def _name(self, what: Any, frames: list[FrameType]) -> str | None:
        """The name of a variable or attribute by which the program refers to it."""
        for frame in reversed(frames):
            if not is_own(frame.f_code.co_filename):
                continue
            for scope in _scopes(frame):
                for name, value in scope:
                    if value is what or self._is_part_of(what, value):
                        return name
        return None

    def _is_part_of(self, what: Any, value: Any) -> bool:
        """Whether a variable's value is the queue or condition of a line or lock."""
        kind = _class_of(value, "uringloop.sync", "asyncio.locks")
        if kind == "Condition":
            return what is getattr(value, "_lock", None) or what is getattr(value, "_line", None)
        if type(what).__name__ not in ("Items", "Room", "WaitGroup"):
            return False
        # Without the GIL, other threads may change what other objects refer to; a queue's lines stay the same.
        looks = kind in ("Queue", "LifoQueue", "PriorityQueue") or (self._gil and kind is not None)
        return looks and any(each is what for each in gc.get_referents(value))


def _tasks_of(loop: Any) -> Iterator[asyncio.Task[Any]]:
    for _ in range(100):
        try:
            yield from list(asyncio.all_tasks(loop))
            return
        except RuntimeError:  # the set of tasks changed while all_tasks() copied it
            continue


def _given_name(what: Any) -> str | None:
    """The name that the program gave to one of uringloop's primitives."""
    return what.name if isinstance(what, Waitlist) else None


def _in_order(futures: Any) -> list[Any]:
    """A set of tasks, by name: the other futures in it are of no interest."""
    return sorted((each for each in tuple(futures) if isinstance(each, asyncio.Task)), key=_name_order)


def _name_order(task: asyncio.Task[Any]) -> tuple[int, str]:
    name = task.get_name()
    return len(name), name


def _class_of(what: Any, *packages: str) -> str | None:
    """The name of its class in one of these packages, also if the program has a subclass."""
    for each in type(what).__mro__:
        if each.__module__.partition(".")[0] in packages or each.__module__.startswith(tuple(packages)):
            return each.__name__
    return None


def _scopes(frame: FrameType) -> Iterator[list[tuple[str, Any]]]:
    variables = frame.f_locals
    yield [(name, value) for name, value in variables.items() if name != "self"]
    try:
        attributes = object.__getattribute__(variables.get("self"), "__dict__")
    except AttributeError:
        attributes = {}
    yield list(attributes.items())
    yield list(frame.f_globals.items())


def _exits(coroutine: Any) -> list[Any]:
    """The context managers whose `__aexit__` a suspended frame will call, the innermost last."""
    found = []
    referents = gc.get_referents(coroutine)
    for at, each in enumerate(referents):
        if getattr(type(each), "__name__", "") in _METHODS and getattr(each, "__name__", "") == "__aexit__":
            # Since Python 3.14 the frame has the function and the manager, one after the other.
            owner = getattr(each, "__self__", None)
            found.append(
                owner if owner is not None else referents[at + 1] if at + 1 < len(referents) else None
            )
    return found


_METHODS = (
    "method",
    "builtin_function_or_method",
    "function",
    "method_descriptor",
    "cython_function_or_method",
)


def _held(coroutines: list[Any], frames: list[FrameType]) -> list[Any]:
    """The locks that a task's `async with` blocks hold now."""
    found = []
    for coroutine, frame in zip(coroutines, frames, strict=True):
        managers = _exits(coroutine)
        if managers and is_entering(frame):
            managers.pop()  # it is not entered yet
        for each in managers:
            kind = _class_of(each, "uringloop", "asyncio")
            if kind in _LOCKS:
                found.append(getattr(each, "_lock", None) if kind == "Condition" else each)
    released = [_released_by(frame) for frame in frames]
    return [each for each in found if each is not None and all(each is not lock for lock in released)]


def _released_by(frame: FrameType) -> Any:
    """The lock that a Condition.wait() has released, or acquires again."""
    if frame.f_code.co_name != "wait":
        return None
    condition = frame.f_locals.get("self")
    is_one = _class_of(condition, "uringloop.sync", "asyncio.locks") == "Condition"
    return getattr(condition, "_lock", None) if is_one else None


def _is_timed(coroutine: Any, frame: FrameType) -> bool:
    """Whether a timeout is going to end this wait."""
    if is_in(frame, "asyncio/tasks.py") and frame.f_code.co_name in ("wait_for", "_wait"):
        return frame.f_locals.get("timeout") is not None
    return any(type(each).__name__ == "Timeout" for each in _exits(coroutine))


def _is_main(task: asyncio.Task[Any]) -> bool:
    callbacks = getattr(task, "_callbacks", None) or ()
    return any(getattr(callback, "__name__", "") == "_run_until_complete_cb" for callback, _ in callbacks)


def _job_of(task: asyncio.Task[Any]) -> Any:
    """The scheduler's job that a task runs: the task's end settles it."""
    for callback, _ in getattr(task, "_callbacks", None) or ():
        found = getattr(callback, "__self__", None)
        if _class_of(found, "uringloop.scheduler") == "Job":
            return found
    return None


def _executor_call(future: asyncio.Future[Any]) -> Any:
    """The concurrent.futures.Future whose result a future waits for (asyncio.wrap_future)."""
    for callback, _ in getattr(future, "_callbacks", None) or ():
        if getattr(callback, "__qualname__", "").startswith("_chain_future."):
            for cell in getattr(callback, "__closure__", None) or ():
                found = cell.cell_contents
                if found is not future and type(found).__module__.startswith("concurrent.futures"):
                    return found
    return None


def _is_lost(task: asyncio.Task[Any], awaited: list[Any]) -> bool:
    """Whether only the task itself and its frames refer to the future for which it waits: nothing can set it."""
    future = getattr(task, "_fut_waiter", None)
    if type(future) is not asyncio.Future or weakref.getweakrefcount(future):
        return False
    probe = object()
    own = (
        3 + sys.getrefcount(probe) - 1
    )  # by the task, by our variable and our caller's, by the argument of a call
    each: Any
    for what in awaited:
        for each in gc.get_referents(what):
            own += each is future
    each = None  # a variable of a loop is local, and no generator's cell: both kinds of arguments count alike
    return sys.getrefcount(future) <= own
