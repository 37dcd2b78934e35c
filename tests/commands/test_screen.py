from __future__ import annotations

from typing import Any

import pytest

from uringloop.commands.screen import clean, duration, lines, percent, suspended
from uringloop.inspect.rates import Rates

LOOP: dict[str, Any] = {
    "number": 1,
    "engine": "uring",
    "state": "running",
    "thread": "MainThread",
    "debug": True,
    "statistics": {"ready": 1, "timers": 2, "transports": 3, "in_kernel": 4},
    "operations": {"RecvOp": 3, "WakeOp": 1},
    "running": {"seconds": 1.5, "name": "stuck", "detail": "Task-1", "stack": ["  File a\n    b"]},
    "slowest": [{"seconds": 0.0123, "ago_seconds": 3.2, "name": "slow", "detail": None}],
    "tasks": {
        "count": 30,
        "shown": [{"name": f"Task-{i}", "coroutine": "main", "stack": []} for i in range(25)],
    },
}
SNAPSHOT = {"pid": 7, "command": ["a.py", "b"], "uringloop": "1", "python": "3.11", "loops": [LOOP]}
RATES = {1: Rates(10.0, 20.0, 30.0, 40.0, 0.256, 0.5)}


def test_all_parts_of_a_snapshot_are_shown() -> None:
    text = "\n".join(lines(SNAPSHOT, RATES))
    for part in (
        "process 7 (a.py b)",
        "1 loop",
        "loop 1: uring, running, debug, thread MainThread",
        "busy 25.6 %, cpu 50.0 %",
        "turns 10/s, callbacks 20/s, system calls 40/s",
        "ready 1, timers 2, transports 3",
        "in the kernel: RecvOp 3, WakeOp 1",
        "stuck for 1.50 s in stuck (Task-1):",
        "      File a\n        b",
        "12.30 ms  slow, 3 s ago",
        "tasks: 30",
        "and 10 more",
    ):
        assert part in text, text


def test_hints_come_last_and_are_clean() -> None:
    text = lines({**SNAPSHOT, "hints": ["one \x1b[2J", "two"]}, RATES)
    assert text[-4:] == ["", "worth a look:", "  one ?[2J", "  two"]
    assert "worth a look:" not in lines({**SNAPSHOT, "hints": []}, RATES)


def test_unknown_values_are_shown_as_unknown() -> None:
    loop = {**LOOP, "operations": None, "running": None, "slowest": [], "tasks": None, "thread": None}
    text = "\n".join(lines({**SNAPSHOT, "loops": [loop, {**loop, "operations": {}}]}, {}))
    for part in ("2 loops", "busy ?", "in the kernel: 4", "in the kernel: nothing", "tasks: not known"):
        assert part in text, text
    assert "stuck for" not in text and "slowest" not in text


def test_names_cannot_send_escape_codes_to_the_terminal() -> None:
    assert clean("a\x1b[2Jb\nc\u202ed") == "a?[2Jb?c?d"
    hostile = {**LOOP["slowest"][0], "name": "\x1b[31m"}
    assert "\x1b" not in "".join(lines({**SNAPSHOT, "loops": [{**LOOP, "slowest": [hostile]}]}, RATES))


@pytest.mark.parametrize(
    ("stack", "shown"),
    [
        ([], "not started, or over"),
        (["/x/a.py:1 in f"], "a.py:1 in f"),
        (["/x/a.py:1 in f", "/lib/asyncio/locks.py:2 in wait"], "a.py:1 in f > locks.py:2 in wait"),
        (["/lib/asyncio/locks.py:2 in wait"], "locks.py:2 in wait"),
    ],
)
def test_a_task_is_at_the_program_s_line(stack: list[str], shown: str) -> None:
    assert suspended({"stack": stack}) == shown


def test_figures() -> None:
    assert [duration(each) for each in (2.5, 0.0025, 0.0000025)] == ["2.50 s", "2.50 ms", "2.5 us"]
    assert [percent(each) for each in (None, 0.5)] == ["?", "50.0 %"]
