"""Job: the submitter's handle of a coroutine that a scheduler runs. It is a concurrent.futures.Future for threads and
libraries, can be awaited on any loop, and is what asyncio's functions take. Outcome, the compiled half, has its
methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, NoReturn, TypeVar

from uringloop.scheduler.outcome import Outcome
from uringloop.sync.wait_group import WaitGroup

T = TypeVar("T")
Work = Coroutine[Any, Any, T] | Callable[..., Coroutine[Any, Any, T]]


class Job(Outcome[T], Future[T]):
    """The result of `submit`. Awaiting it returns the coroutine's result. Cancelling a task that awaits it also
    cancels the job, as with a task that awaits a task (asyncio.shield prevents that)."""

    def __init__(self, owner: Any, name: str | None = None) -> None:
        pass  # without Future.__init__: Outcome keeps the state

    def set_running_or_notify_cancel(self, *_: object) -> NoReturn:
        raise RuntimeError("only the scheduler runs a Job and sets its result")

    set_result = set_exception = set_running_or_notify_cancel  # type: ignore[assignment]

    def __repr__(self) -> str:
        context = "" if self._intake is None else f" on {self._intake.name}"
        name = "" if self._name is None else f" {self._name!r}"
        return f"<Job{name} {self._state.lower().partition('_')[0]}{context}>"


class InternalJobs:
    """The owner of the scheduler's internal jobs: they count as alive, but not towards max_pending."""

    def __init__(self, alive: WaitGroup) -> None:
        self._alive = alive

    def _settled(self) -> None:
        self._alive.end()


def coroutine_of(work: Work[T], args: tuple[Any, ...]) -> Coroutine[Any, Any, T]:
    coroutine = work(*args) if callable(work) else work
    if not inspect.isawaitable(coroutine) or not hasattr(coroutine, "send"):
        raise TypeError(f"submit takes a coroutine or an async function, not {work!r}")
    return coroutine
