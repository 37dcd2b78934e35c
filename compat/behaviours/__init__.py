"""Our own checks of what asyncio promises, one small function each, grouped by area.

A check is a function with `@check(row)`. It may be async (it then runs on a loop under test) or not (it makes
its loops by `new_loop()`). It asserts what stock asyncio does. `python -m compat` runs each in a process of its own;
`make test` runs those that are not `alone` in the tests' own, so they leave the process as they found it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# the order of the table in the report
AREAS = (
    "lifecycle",
    "callbacks",
    "timers",
    "tasks",
    "errors",
    "threads",
    "connect",
    "servers",
    "streams",
    "flow",
    "writing",
    "protocols",
    "sendfile",
    "sockets",
    "readers",
    "datagrams",
    "unix",
    "tls",
    "tls_upgrade",
    "pipes",
    "signals",
    "subprocesses",
    "resources",
    "reports",
)


@dataclass(frozen=True)
class About:
    """What a check is about: the line of the table it belongs to, and the first Python that promises it."""

    row: str
    since: tuple[int, ...]
    alone: bool


def check(row: str, since: tuple[int, ...] = (3, 11), *, alone: bool = False) -> Callable[[Any], Any]:
    """Make a function a check of the table's line `row`.

    `alone`: it forks, interrupts or changes its process, so it always has one of its own."""

    def mark(function: Any) -> Any:
        function.about = About(row, since, alone)
        return function

    return mark
