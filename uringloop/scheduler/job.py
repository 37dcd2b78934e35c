"""Job: a coroutine that was handed to a scheduler, as its submitter sees it. A concurrent.futures.Future for
threads and libraries, and awaitable on any loop. What it does is in Outcome, the compiled half."""

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
    """What `submit` returns. Awaiting it gives what the coroutine gave; cancelling who awaits it cancels it,
    as with a task (asyncio.shield keeps that off)."""

    def __init__(self, owner: Any, name: str | None = None) -> None:
        pass  # Future's own state is not needed: Outcome has it

    def set_running_or_notify_cancel(self, *_: object) -> NoReturn:
        raise RuntimeError("a Job is run, and settled, by its scheduler")

    set_result = set_exception = set_running_or_notify_cancel  # type: ignore[assignment]

    def __repr__(self) -> str:
        context = "" if self._intake is None else f" on {self._intake.name}"
        name = "" if self._name is None else f" {self._name!r}"
        return f"<Job{name} {self._state.lower().partition('_')[0]}{context}>"


class InternalJobs:
    """Whose jobs the scheduler's own are: counted as alive, but not by max_pending."""

    def __init__(self, alive: WaitGroup) -> None:
        self._alive = alive

    def _settled(self) -> None:
        self._alive.end()


def coroutine_of(work: Work[T], args: tuple[Any, ...]) -> Coroutine[Any, Any, T]:
    coroutine = work(*args) if callable(work) else work
    if not inspect.isawaitable(coroutine) or not hasattr(coroutine, "send"):
        raise TypeError(f"a coroutine or an async function is submitted, not {work!r}")
    return coroutine
