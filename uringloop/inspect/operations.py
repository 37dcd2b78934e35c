"""Operation: a description of one operation that a loop has in the kernel. It doesn't keep the operation alive."""

from __future__ import annotations

from asyncio import Future, Task
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation in the list that `loop.operations()` returns."""

    kind: str  # of operation: "RecvOp multishot", "FileOp read", ...
    fd: int  # -1 if it has none
    state: str  # "queued" (for the next entry into the kernel), "in kernel" or "cancelling"
    owner: Any  # the transport, server, handle or task that it is for; None: the loop itself
    since: float | None = None  # loop.time() of its submission, if an observer (a watchdog, say) was active

    def __str__(self) -> str:
        since = "" if self.since is None else f" since {self.since:.6f}"
        owner = "the loop" if self.owner is None else self.owner
        return f"{self.kind} fd={self.fd} {self.state}{since} for {owner}"


def operations(loop: Any) -> list[Operation]:
    """The loop's operations, the oldest first. Only in the loop's own thread, or while the loop doesn't run."""
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
    """The owner; if that is a future, the task that awaits it."""
    if isinstance(owner, Future):
        for callback, _ in getattr(owner, "_callbacks", None) or ():
            task = getattr(callback, "__self__", None)
            if isinstance(task, Task):
                return task
    return owner
