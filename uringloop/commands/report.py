"""The output of `uringloop dump`: loops, threads, the tree of tasks, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from uringloop.commands.screen import clean
from uringloop.inspect.verdicts import Named, for_seconds, spot

MOST_LINES = 200  # of the tree


def report(dump: dict[str, Any]) -> list[str]:
    return [clean(line) for line in _lines(dump)]


def _lines(dump: dict[str, Any]) -> Iterator[str]:
    yield from _headline(dump)
    for loop in dump["loops"]:
        yield f"loop {loop['number']}: {loop['engine']}, {loop['state']}{_thread_of(dump, loop['thread'])}"
        yield from _stack(loop["stack"])
    for thread in dump["threads"]:
        if thread["loop"] is None:
            name = f"'{thread['name']}'" if thread["name"] else f"{thread['ident']:#x}"
            state = "" if thread["state"] == "suspect" else f", {thread['state']}"
            yield f"thread {name}{state}"
            if thread["state"] != "idle":
                yield from _stack(thread["stack"])
    if dump["tasks"]:
        yield ""
        yield from _tree(Named(dump))
    yield ""
    yield from _verdict(dump)


def _headline(dump: dict[str, Any]) -> Iterator[str]:
    if dump["how"] == "signal":
        yield f"process {dump['pid']}: it runs no Python code; its signal handler wrote these stacks"
    else:
        yield (
            f"process {dump['pid']} ({' '.join(dump['command'])[:60]}), uringloop {dump['uringloop']}, "
            f"Python {dump['python']}"
        )
    yield ""


def _thread_of(dump: dict[str, Any], number: int | None) -> str:
    found = next((thread for thread in dump["threads"] if thread["ident"] == number), None)
    return "" if found is None or found["name"] is None else f", thread '{found['name']}'"


def _stack(stack: list[dict[str, Any]]) -> Iterator[str]:
    for place in stack:
        yield f"    {place['file']}:{place['line']} in {place['function']}"


def _tree(named: Named) -> Iterator[str]:
    """Each task, and below it the tasks that wait for it alone, or for what it holds."""
    tasks = named.tasks
    below: dict[int, list[int]] = {number: [] for number in tasks}
    roots: list[int] = []
    for number, task in tasks.items():
        above = [each for each in named.needs(task) if each != number]
        (below[above[0]] if len(above) == 1 else roots).append(number)
    shown: set[int] = set()
    lines: list[str] = []
    for root in [*roots, *tasks]:  # after the roots, those that wait for each other in a circle
        left = [(root, 0)]
        while left:
            number, depth = left.pop()
            if number not in shown:
                shown.add(number)
                lines.append("  " * min(depth, 20) + _task(named, tasks[number]))
                left += [(each, depth + 1) for each in reversed(below[number])]
    yield "tasks; below each, those that wait for it:"
    yield from lines[:MOST_LINES]
    left_out = len(lines[MOST_LINES:]) + named.dump["tasks_left_out"]
    if left_out:
        yield f"... and {left_out} more"


def _task(named: Named, task: dict[str, Any]) -> str:
    held = [named.primitive(number) for number in task["holds"]]
    holds = f", holds {' and '.join(held)}" if held else ""
    state = task["state"] if task["waits_for"] is None else f"waits for {named.what(task)}"
    state += "" if task["waits_for"] is None else for_seconds(task["waits_for"])
    return f"  '{task['name']}' (loop {task['loop']}){holds}: {state}{spot(task['at'])}"


def _verdict(dump: dict[str, Any]) -> Iterator[str]:
    certain = [each for each in dump["verdicts"] if each["certain"]]
    other = [each for each in dump["verdicts"] if not each["certain"]]
    yield "Stuck:" if certain else "Nothing is stuck."
    for each in certain:
        yield f"  {each['text']}"
    if other:
        yield "Waits that may be right:"
        for each in other:
            yield f"  {each['text']}"
