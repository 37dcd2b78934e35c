"""Verdicts: what is stuck in a dump, and at which line, in words. A verdict that is `certain` says that something is
stuck; any other describes a wait that may be right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from uringloop.inspect.frames import is_own

Verdict = dict[str, Any]

_FILLED = {
    "Queue.get": ("an item of", "puts an item into it"),
    "Queue.put": ("room in", "takes an item from it"),
    "Queue.join": ("the last item of", "calls its task_done()"),
    "Event": ("", "sets it"),
    "AutoResetEvent": ("", "sets it"),
    "Condition": ("a notification of", "notifies it"),
}


class Named:
    """A dump, and its objects by number."""

    def __init__(self, dump: dict[str, Any]) -> None:
        self.dump = dump
        self.tasks = {task["id"]: task for task in dump["tasks"]}
        self.primitives = {each["id"]: each for each in dump["primitives"]}
        self.threads = {thread["ident"]: thread for thread in dump["threads"]}

    def needs(self, task: dict[str, Any]) -> list[int]:
        """The tasks without which this one can't go on; none if that isn't known."""
        wait = task["waits_for"]
        if wait is None or (wait["any"] and len(wait["tasks"]) > 1):
            return []
        if wait["primitive"] is None:
            return list(wait["tasks"])
        primitive = self.primitives[wait["primitive"]]
        alone = primitive["exclusive"] and len(primitive["holders"]) == 1
        return list(primitive["holders"]) if alone else []

    def behind(self, cycle: list[int]) -> set[int]:
        """These tasks, and all that wait for them."""
        found = set(cycle)
        while more := {
            number
            for number, task in self.tasks.items()
            if number not in found and found & set(self.needs(task))
        }:
            found |= more
        return found

    def primitive(self, number: int) -> str:
        return name_of(self.primitives[number])

    def what(self, task: dict[str, Any], most: int = 3) -> str:
        """What a task waits for, in words."""
        wait = task["waits_for"]
        if wait["primitive"] is not None:
            primitive = self.primitives[wait["primitive"]]
            before = _FILLED.get(wait["kind"], ("", ""))[0]
            return f"{before} {name_of(primitive)}".strip()
        if wait["tasks"]:
            names = [f"task '{self.tasks[each]['name']}'" for each in wait["tasks"]]
            further = f" and {len(names) - most} more" if len(names) > most else ""
            return ("the job of " if wait["kind"] == "Job" else "") + ", ".join(names[:most]) + further
        return {
            "executor": "a call in an executor's thread",
            "io": "the kernel",
            "timer": "a timer",
            "Job": "a job",
        }.get(wait["kind"], "a future")


def name_of(primitive: dict[str, Any]) -> str:
    return (
        f"{primitive['kind']} '{primitive['name']}'"
        if primitive["name"]
        else f"{primitive['kind']} {primitive['id']}"
    )


def for_seconds(wait: dict[str, Any]) -> str:
    """How long it has lasted, if that was recorded."""
    return "" if wait.get("seconds") is None else f" for {wait['seconds']:.1f} s"


def spot(place: dict[str, Any] | None) -> str:
    return "" if place is None else f" in {place['function']}(), {place['file']}:{place['line']}"


def verdicts(dump: dict[str, Any]) -> list[Verdict]:
    """The verdicts, the certain ones first."""
    if dump["how"] == "signal":
        return [_gil(dump)]
    known = Named(dump)
    found = [_blocked(loop) for loop in dump["loops"] if loop["state"] == "blocked"]
    cycles = cycles_of(known)
    found += [deadlock(known, cycle) for cycle in cycles]
    explained = {number for cycle in cycles for number in cycle}
    if dump["still"]:
        found += _endless(known, explained)
    else:
        found += _lost(known)
    return found + _waits(known, found, explained)


def _verdict(kind: str, certain: bool, place: dict[str, Any] | None, text: str, **more: Any) -> Verdict:
    where = place or {"file": None, "line": None, "function": None}
    return {"kind": kind, "certain": certain, **where, "text": text, **more}


def _blocked(loop: dict[str, Any]) -> Verdict:
    at, seconds = loop["at"], f" for at least {loop['blocked_seconds']:.1f} s"
    who = f"loop {loop['number']}"
    if at is None:
        return _verdict(
            "blocked", True, None, f"{who} is blocked by a callback that is no Python function,{seconds}"
        )
    task = f" (task '{loop['task']}')" if loop["task"] else ""
    by = f"is blocked by {loop['calls']}" if loop["calls"] else "is blocked by code that does not return,"
    return _verdict("blocked", True, at, f"{who} {by}{spot(at)}{task},{seconds}", loop=loop["number"])


def _gil(dump: dict[str, Any]) -> Verdict:
    suspects = [thread for thread in dump["threads"] if thread["state"] == "suspect"]
    if not suspects:
        return _verdict("gil", True, None, "the inspector's thread gets no turn to run Python code")
    places = [
        f"{thread['at']['function']}(), {thread['at']['file']}:{thread['at']['line']}" for thread in suspects
    ]
    if len(suspects) == 1:
        text = f"C code that does not release the GIL stops all threads; it was called in {places[0]}"
    else:
        text = (
            "C code that does not release the GIL stops all threads; it was called in one of: "
            + "; ".join(places)
        )
    return _verdict("gil", True, suspects[0]["at"], text)


def cycles_of(known: Named) -> list[list[int]]:
    """The circles of tasks that wait for each other, each circle once."""
    done: set[int] = set()
    found = []
    for start in known.tasks:
        way: list[int] = []
        nexts = [iter([start])]
        while nexts:
            number = next(nexts[-1], None)
            if number is None:
                nexts.pop()
                if way:
                    done.add(way.pop())
            elif number in way:
                found.append(way[way.index(number) :])
            elif number not in done:
                way.append(number)
                nexts.append(iter(known.needs(known.tasks[number])))
    return found


def deadlock(known: Named, cycle: list[int]) -> Verdict:
    tasks = [known.tasks[number] for number in cycle]
    parts = []
    for task in tasks:
        held = [name_of(known.primitives[number]) for number in task["holds"]]
        holds = f"holds {' and '.join(held)} and " if held else ""
        parts.append(f"task '{task['name']}' {holds}waits for {known.what(task)}{spot(task['at'])}")
    timed = any(known.tasks[number]["timed"] for number in known.behind(cycle))
    ends = " (a timeout is going to end it)" if timed else ""
    places = [task["at"] for task in tasks]
    return _verdict(
        "deadlock", not timed, tasks[0]["at"], f"deadlock{ends}: {'; '.join(parts)}", places=places
    )


def _endless(known: Named, explained: set[int]) -> list[Verdict]:
    """In a process in which nothing can wake a task: what the tasks wait for, that no other task explains."""
    roots: dict[Any, list[dict[str, Any]]] = {}
    for task in known.tasks.values():
        wait = task["waits_for"]
        if wait is None or task["id"] in explained or wait["tasks"] or known.needs(task):
            continue
        line = None if wait["primitive"] else (task["at"] or {}).get("line")
        roots.setdefault((wait["primitive"], wait["kind"], wait["thread"], line), []).append(task)
    return [_root(known, tasks) for tasks in roots.values()]


def _root(known: Named, tasks: list[dict[str, Any]]) -> Verdict:
    task = tasks[0]
    wait, at = task["waits_for"], task["at"]
    thread = known.threads.get(wait["thread"])
    if thread is not None:
        where, text = _call(task, thread)
        return _verdict("executor", True, where, f"{_count(tasks)} {text}, and no thread ends that")
    kind = {"Future": "future", "Task": "task", "Job": "job"}.get(wait["kind"], wait["kind"])
    what, ends = known.what(task), ends_of(known, wait)
    text = f"{_line_behind(known, tasks)} {what}{spot(at)}, and nothing that is left in this process {ends}"
    return _verdict(kind, True, at, text)


def ends_of(known: Named, wait: dict[str, Any]) -> str:
    """What another task or thread would do to end a wait: "sets it"."""
    if wait["primitive"] is not None and wait["kind"] not in _FILLED:
        return f"releases it ({_holders(known, known.primitives[wait['primitive']])})"
    return _FILLED.get(wait["kind"], ("", "sets its result"))[1]


def _line_behind(known: Named, tasks: list[dict[str, Any]]) -> str:
    """Who waits: the tasks, or first those that wait for a lock that the only one of them holds."""
    for number in tasks[0]["holds"] if len(tasks) == 1 else ():
        waiters = [known.tasks[each] for each in known.primitives[number]["waiters"]]
        if waiters:
            held = f"{known.primitive(number)}, held by task '{tasks[0]['name']}'"
            return f"{_count(waiters)} {held}, which waits for"
    return _count(tasks)


def _call(task: dict[str, Any], thread: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Where the thread is that works for the task, and that in words."""
    at = thread["at"]
    if at is None or not is_own(at["file"]):
        at, calls = task["at"], " in a function that is not written in Python, called"
    else:
        calls = f" at {thread['calls']}" if thread["calls"] else ""
    return at, f"a call in thread '{thread['name']}', which is{calls}{spot(at)}"


def _holders(known: Named, primitive: dict[str, Any]) -> str:
    names = [f"task '{known.tasks[number]['name']}'" for number in primitive["holders"][:3]]
    return f"held by {', '.join(names)}" if names else "holder unknown"


def _count(tasks: list[dict[str, Any]]) -> str:
    return f"task '{tasks[0]['name']}' waits for" if len(tasks) == 1 else f"{len(tasks)} tasks wait for"


def _lost(known: Named) -> list[Verdict]:
    """Waits for futures that nothing can set. The main task may well wait so: a signal or its own end cancels it."""
    found = []
    for task in known.tasks.values():
        wait = task["waits_for"]
        if wait is not None and wait.get("nothing_else_refers") and not task["main"]:
            text = (
                f"task '{task['name']}' waits for a future{spot(task['at'])}, to which nothing else refers: only a "
                f"cancellation ends this wait"
            )
            found.append(_verdict("future", not task["timed"], task["at"], text))
    return found


def _waits(known: Named, said: list[Verdict], explained: set[int]) -> list[Verdict]:
    """What may be right: tasks that wait for a lock, and tasks that wait for an executor's thread."""
    found = []
    for primitive in known.primitives.values():
        waiters = [known.tasks[number] for number in primitive["waiters"]]
        locks = [
            task
            for task in waiters
            if task["waits_for"]["kind"] not in _FILLED and task["id"] not in explained
        ]
        if locks:
            found.append(_line(known, primitive, locks))
    for task in known.tasks.values():
        wait = task["waits_for"]
        thread = None if wait is None else known.threads.get(wait["thread"])
        if thread is not None:
            where, text = _call(task, thread)
            found.append(_verdict("executor", False, where, f"{_count([task])} {text}"))
    places = {(each["file"], each["line"]) for each in said}
    return [each for each in found if (each["file"], each["line"]) not in places]


def _line(known: Named, primitive: dict[str, Any], waiters: list[dict[str, Any]]) -> Verdict:
    text = f"{_count(waiters)} {name_of(primitive)}, {_holders(known, primitive)}"
    place = waiters[0]["at"]
    seen: set[int] = set()
    holders: Iterable[int] = primitive["holders"]
    while len(list(holders)) == 1 and (number := next(iter(holders))) not in seen:
        seen.add(number)
        holder = known.tasks[number]
        place = holder["at"] or place
        if holder["waits_for"] is None:
            text += f", which is {'running' if holder['state'] == 'running' else 'about to run'}"
            break
        text += f", which waits for {known.what(holder)}{spot(holder['at'])}"
        holders = known.needs(holder)
    return _verdict("line", False, place, text)
