"""A crowd before a primitive: tasks on three loops and plain threads that come, time out, are cancelled, and whose
loops close, in any order. What hypothesis draws happens step by step: a loop runs when it is told to, and after each
step all threads are waited for: each stands in a line, holds what it got, or is through. So every run of an example is
the same."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
    run_state_machine_as_test,
)

import uringloop

LOOPS = st.integers(0, 2)


def play(model: type[RuleBasedStateMachine], examples: int = 40) -> None:
    found = settings(
        max_examples=examples,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    run_state_machine_as_test(model, settings=found)  # type: ignore[no-untyped-call]


def turn(loop: Any) -> None:
    """One turn of the loop, if it is open."""
    if not loop.is_closed():
        loop.call_soon(loop.stop)
        loop.run_forever()


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline, "it hangs"
        time.sleep(0.0001)


class Visit:
    """One task or thread that came: `over` once it left, whatever with."""

    def __init__(self, where: int | None) -> None:
        self.where = where  # its loop; None: a thread
        self.over = False
        self.result: Any = None
        self.task: Any = None
        self.inner: Any = None  # a task that it waits for
        self.thread: threading.Thread | None = None
        self.leave = threading.Event()  # for who holds something meanwhile


class Crowd(RuleBasedStateMachine):
    """What a model adds: how many threads wait, and how many hold something."""

    most = 25

    def __init__(self) -> None:
        super().__init__()
        self.loops = [uringloop.new_event_loop() for _ in range(3)]
        self.visits: list[Visit] = []

    def threads_waiting(self) -> int:
        raise NotImplementedError

    def threads_inside(self) -> int:
        return 0

    def check_invariants(self, *args: Any, **options: Any) -> None:
        # First, whatever the names of the invariants: a thread that is on its way would be seen half way.
        self.threads_are_quiet()
        super().check_invariants(*args, **options)

    def threads_are_quiet(self) -> None:
        until(lambda: self.quiet() and self.quiet())  # twice: one may change from a line to another

    def quiet(self) -> bool:
        here = sum(visit.where is None and not visit.over for visit in self.visits)
        return self.threads_waiting() + self.threads_inside() == here

    def may_close(self, where: int) -> bool:
        return True

    def room(self) -> bool:
        return len(self.visits) < self.most

    def come(
        self, where: int, work: Callable[[Visit], Coroutine[Any, Any, Any]], patience: float | None
    ) -> Visit | None:
        """A task on that loop, which runs until it waits."""
        loop = self.loops[where]
        if loop.is_closed():
            return None
        visit = Visit(where)

        async def body() -> None:
            try:
                async with asyncio.timeout(patience):
                    visit.result = await work(visit)
            except TimeoutError:
                pass
            finally:
                visit.over = True

        visit.task = loop.create_task(body())
        self.visits.append(visit)
        turn(loop)
        return visit

    def come_plain(self, work: Callable[[Visit], Any]) -> Visit:
        """A thread."""
        visit = Visit(None)

        def body() -> None:
            try:
                visit.result = work(visit)
            except Exception as error:
                visit.result = error
            finally:
                visit.over = True

        visit.thread = threading.Thread(target=body, daemon=True)
        self.visits.append(visit)
        visit.thread.start()
        self.threads_are_quiet()
        return visit

    @rule(where=LOOPS)
    def step(self, where: int) -> None:
        turn(self.loops[where])

    @precondition(lambda self: any(visit.task is not None for visit in self.visits))
    @rule(data=st.data())
    def cancel(self, data: Any) -> None:
        visit = data.draw(st.sampled_from([visit for visit in self.visits if visit.task is not None]))
        if not self.loops[visit.where].is_closed():
            self.loops[visit.where].call_soon(visit.task.cancel)

    @rule(where=LOOPS)
    def close(self, where: int) -> None:
        if sum(not loop.is_closed() for loop in self.loops) > 1 and self.may_close(where):
            self.loops[where].close()
            for visit in self.visits:
                if visit.where == where:  # as when nobody knows them any more
                    visit.task._log_destroy_pending = False
                    visit.task.get_coro().close()

    def settle(self) -> None:
        for _ in range(6):
            for loop in self.loops:
                turn(loop)
            self.threads_are_quiet()

    def lives(self, visit: Visit) -> bool:
        return visit.where is None or not self.loops[visit.where].is_closed()

    def end(self) -> None:
        """All are expected to have left."""
        for visit in self.visits:
            if visit.thread is not None:
                visit.thread.join(20)
                assert visit.over, "a thread hangs"
            elif self.lives(visit):
                assert visit.task.done(), "everybody's turn came"
        for loop in self.loops:
            loop.close()

    def end_all(self) -> None:
        """Those that still wait are sent away."""
        for visit in self.visits:
            if visit.task is not None and self.lives(visit) and not visit.task.done():
                visit.task.cancel()
        for _ in range(4):
            self.settle()
