"""Operation: one thing a loop has in the kernel, and for whom. A snapshot: it holds nothing in the kernel."""

from __future__ import annotations

from asyncio import Future, Task
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Operation:
    """One of what `loop.operations()` returns."""

    kind: str  # of operation: "RecvOp multishot", "FileOp read", ...
    fd: int  # -1 where there is none
    state: str  # "queued" for the next entering of the kernel, "in kernel", "cancelling"
    owner: Any  # the transport, server, handle or task it is for; None: the loop itself
    since: float | None = None  # loop.time() of its submission, if somebody looked then (a watchdog, say)

    def __str__(self) -> str:
        since = "" if self.since is None else f" since {self.since:.6f}"
        owner = "the loop" if self.owner is None else self.owner
        return f"{self.kind} fd={self.fd} {self.state}{since} for {owner}"


def operations(loop: Any) -> list[Operation]:
    """The oldest first. In the loop's own thread, or while it does not run."""
    if loop.is_closed():
        return []
    loop._check_thread()
    found = [
        Operation(op.kind, op.fd, op.state_name, _owner(op.owned_by), _since(loop, op))
        for op in loop.engine.ops
    ]
    return found[::-1] + list(loop._readers.operations())


def _since(loop: Any, op: Any) -> float | None:
    since: int = 0 if loop.monitor is None else loop.monitor.since(op)
    return since / 1e9 if since else None


def _owner(owner: Any) -> Any:
    """For a future, the task that awaits it."""
    if isinstance(owner, Future):
        for callback, _ in getattr(owner, "_callbacks", None) or ():
            task = getattr(callback, "__self__", None)
            if isinstance(task, Task):
                return task
    return owner
