"""Stopping: what a stop reports, and how contexts are ended within a time."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from uringloop.scheduler.context import LEAST_END_SECONDS, Context
from uringloop.scheduler.job import Job


@dataclass(frozen=True)
class StopReport:
    """What a stop had to break off."""

    cancelled: int = 0  # jobs that did not finish in time
    abandoned: list[Job[Any]] = field(default_factory=list)  # that did not even end when cancelled
    dead: list[Context] = field(default_factory=list)  # contexts whose loop had died; `error` says of what
    stuck: list[Context] = field(default_factory=list)  # whose thread was held up, and was left behind
    connections: int = 0  # of servers, that were still open after `timeout`


def end_contexts(contexts: Iterable[Context], grace: float) -> list[Context]:
    """Those that are held up, and were left behind."""
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
    """The cancellations; generators and executors; the stop hook and the closing."""
    return grace + 2 * max(grace, LEAST_END_SECONDS)
