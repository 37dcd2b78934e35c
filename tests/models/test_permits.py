"""Lock, Semaphore, Event and AutoResetEvent against plain models of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

import uringloop
from tests.models.crowd import LOOPS, Crowd, Visit, play, until


class SemaphoreModel(Crowd):
    """And a Lock is one of 1."""

    permits = 2

    def __init__(self) -> None:
        super().__init__()
        self.subject: Any = uringloop.Lock() if self.permits == 1 else uringloop.Semaphore(self.permits)
        self.inside: list[Visit] = []
        self.served: list[int] = []

    def threads_waiting(self) -> int:
        return int(self.subject.threads)

    def threads_inside(self) -> int:
        return sum(visit.where is None for visit in list(self.inside))

    def may_close(self, where: int) -> bool:
        # One whose loop closes while it is inside never leaves: that is the program's fault, not looked at here.
        return all(visit.where != where for visit in self.inside)

    def enter(self, visit: Visit) -> None:
        self.inside.append(visit)
        self.served.append(self.visits.index(visit))

    async def use(self, visit: Visit) -> None:
        async with self.subject:
            self.enter(visit)
            try:
                while not visit.leave.is_set():
                    await asyncio.sleep(0)
            finally:
                self.inside.remove(visit)

    @precondition(Crowd.room)
    @rule(where=LOOPS, patience=st.sampled_from([None, None, 0]))
    def task_comes(self, where: int, patience: float | None) -> None:
        self.come(where, self.use, patience)

    @precondition(Crowd.room)
    @rule(patience=st.sampled_from([None, None, 0, 0.0001]))
    def thread_comes(self, patience: float | None) -> None:
        def use(visit: Visit) -> None:
            if self.subject.acquire_sync(patience):
                self.enter(visit)
                visit.leave.wait(20)
                visit.over = True  # it is not waited for any more, whatever is next
                self.inside.remove(visit)
                self.subject.release()

        self.come_plain(use)
        if patience is not None:  # a thread's time passes by itself
            until(lambda: self.visits[-1].over or self.visits[-1] in self.inside)

    @precondition(lambda self: self.inside)
    @rule(data=st.data())
    def leave(self, data: Any) -> None:
        visit = data.draw(st.sampled_from(list(self.inside)))
        visit.leave.set()
        if visit.thread is not None:
            visit.thread.join(20)

    @invariant()
    def never_more_inside_than_permits(self) -> None:
        assert len(self.inside) <= self.permits

    def teardown(self) -> None:
        for _ in range(2 * len(self.visits)):
            for visit in list(self.inside):
                visit.leave.set()
                if visit.thread is not None:
                    visit.thread.join(20)
            self.settle()
        self.end()
        assert self.inside == []
        assert max(Counter(self.served).values(), default=0) <= 1
        for _ in range(self.permits):
            assert self.subject.acquire_nowait(), "no permit was lost"
        assert not self.subject.acquire_nowait()
        assert self.subject.waiting == 0


class LockModel(SemaphoreModel):
    permits = 1

    @invariant()
    def served_in_order(self) -> None:
        # Over all loops. (Of several permits, one may be had at once while who was granted another still wakes.)
        assert self.served == sorted(self.served)


class EventModel(Crowd):
    """Who waits when it is set wakes, whatever happens to the event afterwards; nobody else does."""

    def __init__(self) -> None:
        super().__init__()
        self.subject = uringloop.Event()
        self.set = False
        self.woken: set[Visit] = set()  # who must be, unless it is cancelled

    def threads_waiting(self) -> int:
        return int(self.subject.threads)

    async def wait(self, visit: Visit) -> bool:
        return await self.subject.wait()

    @precondition(Crowd.room)
    @rule(where=LOOPS, patience=st.sampled_from([None, None, 0]))
    def task_comes(self, where: int, patience: float | None) -> None:
        visit = self.come(where, self.wait, patience)
        if visit is not None and self.set:
            self.woken.add(visit)
            assert visit.result is True, "set before, it does not wait"

    @precondition(Crowd.room)
    @rule(patience=st.sampled_from([None, 0, 0.0001]))
    def thread_comes(self, patience: float | None) -> None:
        visit = self.come_plain(lambda visit: self.subject.wait_sync(patience))
        if self.set:
            self.woken.add(visit)
        if patience is not None or self.set:
            until(lambda: visit.over)
            assert visit.result is self.set

    @rule()
    def set_it(self) -> None:
        self.set = True
        self.woken |= {visit for visit in self.visits if not visit.over}
        self.subject.set()
        assert self.subject.waiting == 0

    @rule()
    def clear_it(self) -> None:
        self.set = False
        self.subject.clear()

    @invariant()
    def says_what_it_is(self) -> None:
        assert self.subject.is_set() == self.set
        assert all(visit in self.woken for visit in self.visits if visit.result is True)

    def teardown(self) -> None:
        self.settle()
        for visit in self.woken:
            assert visit.over or not self.lives(visit)
        self.subject.set()
        self.settle()
        self.end()


class AutoResetModel(Crowd):
    """Each set wakes one, or is kept for the next; sets that are kept are one. What a waiter can not use is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.subject = uringloop.AutoResetEvent()
        self.sets = 0

    def threads_waiting(self) -> int:
        return int(self.subject.threads)

    async def wait(self, visit: Visit) -> bool:
        return await self.subject.wait()

    @precondition(Crowd.room)
    @rule(where=LOOPS, patience=st.sampled_from([None, None, 0]))
    def task_comes(self, where: int, patience: float | None) -> None:
        self.come(where, self.wait, patience)

    @precondition(Crowd.room)
    @rule(patience=st.sampled_from([None, 0, 0.0001]))
    def thread_comes(self, patience: float | None) -> None:
        visit = self.come_plain(lambda visit: self.subject.wait_sync(patience))
        if patience is not None:
            until(lambda: visit.over)

    @rule()
    def set_it(self) -> None:
        self.sets += 1
        waited = self.subject.waiting
        self.subject.set()
        assert self.subject.waiting == max(waited - 1, 0)

    @invariant()
    def nobody_waits_while_it_is_set(self) -> None:
        assert not (self.subject.is_set() and self.subject.waiting)
        assert sum(visit.result is True for visit in self.visits) <= self.sets

    def teardown(self) -> None:
        self.settle()
        for _ in range(self.subject.waiting + 1):
            self.subject.set()
            self.settle()
        self.end()
        assert self.subject.is_set(), "one set more than there were waiters"


@pytest.mark.parametrize("model", [LockModel, SemaphoreModel, EventModel, AutoResetModel])
def test_against_a_plain_model(engine: str, model: type[Crowd]) -> None:
    play(model)
