"""Stopping: the report of a stop, and ending contexts within a time limit."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from uringloop.scheduler.context import LEAST_END_SECONDS, Context
from uringloop.scheduler.job import Job


@dataclass(frozen=True)
class StopReport:
    """What Scheduler.stop had to cancel or leave behind."""

    cancelled: int = 0  # jobs that did not finish in time
    abandoned: list[Job[Any]] = field(default_factory=list)  # jobs that did not end when cancelled
    dead: list[Context] = field(default_factory=list)  # contexts whose loop had died, of their `error`
    stuck: list[Context] = field(default_factory=list)  # contexts left behind, as their thread was blocked
    connections: int = 0  # connections of servers that were still open after `timeout`


def end_contexts(contexts: Iterable[Context], grace: float) -> list[Context]:
    """End the contexts; return those that were left behind, because their thread was blocked."""
    for context in contexts:
        context.ask_to_stop(grace)
    deadline = time.monotonic() + longest_end_seconds(grace)
    for context in contexts:
        context.thread.join(max(deadline - time.monotonic(), 0))
    stuck = [context for context in contexts if context.thread.is_alive()]
    for context in stuck:
        context.give_up()
    return stuck


def longest_end_seconds(grace: float) -> float:
    """`grace` for cancelled tasks, then a limit for generators and executors, and one for the stop hook and close."""
    return grace + 2 * max(grace, LEAST_END_SECONDS)
