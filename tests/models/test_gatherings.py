"""Condition, Barrier and the queues against plain models of them."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

import uringloop
from tests.models.crowd import LOOPS, Crowd, Visit, play, turn, until
from uringloop.errors import QueueShutDown


def waits(task: Any) -> bool:
    """Has it begun, and not ended?"""
    return inspect.getcoroutinestate(task.get_coro()) == inspect.CORO_SUSPENDED


class ConditionModel(Crowd):
    """Tokens are given with a notification each, and taken by who waits for one: nobody waits while there are any.
    A loop may close at any step, and its tasks be destroyed then, later or not at all, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.subject = uringloop.Condition()
        self.tokens = self.given = 0
        self.taken: list[Visit] = []
        self.holding = False
        self.doomed: list[Any] = []  # tasks of loops that have closed

    def threads_waiting(self) -> int:
        return self.subject._line.threads + self.subject._lock.threads

    async def take(self, visit: Visit) -> None:
        async with self.subject:
            await self.subject.wait_for(lambda: self.tokens)
            self.tokens -= 1
            self.taken.append(visit)

    async def take_by_a_task(self, visit: Visit) -> None:
        """As asyncio.wait_for did it before Python 3.12: one task enters and leaves, another one waits."""

        async def wait() -> None:
            await self.subject.wait_for(lambda: self.tokens)
            self.tokens -= 1
            self.taken.append(visit)

        async with self.subject:
            visit.inner = asyncio.ensure_future(wait())
            await visit.inner

    def take_sync(self, patience: float | None, visit: Visit) -> None:
        with self.subject:
            if self.subject.wait_for_sync(lambda: self.tokens, patience):
                self.tokens -= 1
                self.taken.append(visit)

    @precondition(Crowd.room)
    @rule(where=LOOPS, patience=st.sampled_from([None, None, 0]))
    def task_comes(self, where: int, patience: float | None) -> None:
        self.come(where, self.take, patience)

    @precondition(Crowd.room)
    @rule(where=LOOPS, patience=st.sampled_from([None, None, 0]))
    def two_tasks_come(self, where: int, patience: float | None) -> None:
        self.come(where, self.take_by_a_task, patience)

    @rule(where=LOOPS)
    def close(self, where: int) -> None:
        if sum(not loop.is_closed() for loop in self.loops) > 1 and not self.loops[where].is_closed():
            self.loops[where].close()
            tasks = [
                task for visit in self.visits if visit.where == where for task in (visit.task, visit.inner)
            ]
            self.doomed += [task for task in tasks if task is not None and not task.done()]

    @precondition(lambda self: self.doomed)
    @rule(data=st.data())
    def destroy(self, data: Any) -> None:
        self.destroy_one(data.draw(st.sampled_from(self.doomed)))

    def destroy_one(self, task: Any) -> None:
        self.doomed.remove(task)
        task._log_destroy_pending = False
        task.get_coro().close()

    @precondition(Crowd.room)
    @rule(patience=st.sampled_from([None, 0]))
    def thread_comes(self, patience: float | None) -> None:
        self.come_plain(lambda visit: self.take_sync(patience, visit))

    @precondition(lambda self: self.holding or not self.subject.locked())
    @rule(count=st.integers(1, 3), keep=st.booleans())
    def give(self, count: int, keep: bool) -> None:
        """From here; the lock may be kept, so that who was notified waits for it, and can be cancelled there."""
        self.holding = self.holding or self.subject.acquire_nowait()
        self.tokens += count
        self.given += count
        self.subject.notify(count)
        if not keep:
            self.let_go()

    @precondition(lambda self: self.holding)
    @rule()
    def let_go(self) -> None:
        self.holding = False
        self.subject.release()

    def in_line(self) -> list[Visit]:
        return [visit for visit in self.visits if visit.task and not visit.task.done() and self.lives(visit)]

    @precondition(lambda self: len(self.in_line()) > 1)
    @rule(data=st.data())
    def give_to_who_leaves(self, data: Any) -> None:
        """Who was notified waits for the lock, and is cancelled there."""
        self.holding = self.holding or self.subject.acquire_nowait()
        if not self.holding:
            return
        self.give(1, True)
        self.threads_are_quiet()  # one that was notified stands in the lock's line before a task does
        visit = data.draw(st.sampled_from(self.in_line()))
        loop = self.loops[visit.where]
        turn(loop)
        loop.call_soon(visit.task.cancel)
        turn(loop)
        self.let_go()

    @invariant()
    def each_token_is_taken_once(self) -> None:
        assert len(self.taken) + self.tokens == self.given
        assert len(set(self.taken)) == len(self.taken)

    @invariant()
    def who_holds_it_holds_it_alone(self) -> None:
        assert not self.holding or not self.subject.acquire_nowait()

    def teardown(self) -> None:
        if self.holding:
            self.let_go()
        kept = self.doomed  # never destroyed: but those that are inside, who would stay there
        for visit in self.visits:
            if visit.inner is not None and visit.task in kept and not waits(visit.inner):
                self.destroy_one(visit.task)
        for _ in range(len(self.visits) + 1):
            self.settle()
        assert not self.subject.locked()
        assert not (self.tokens and self.subject.statistics()["waiting"]), "a notification was lost"
        for _ in range(len(self.visits) + 1):
            self.give(1, False)
            self.settle()
        self.end()
        assert self.subject.statistics()["waiting"] == 0
        for task in list(kept):
            self.destroy_one(task)
            assert not self.subject.locked()


class BarrierModel(Crowd):
    """Three are let through at once, with a number each; who leaves before is not counted; a time that is over, or
    abort, breaks it until it is reset."""

    parties = 3

    def __init__(self) -> None:
        super().__init__()
        self.subject = uringloop.Barrier(self.parties)

    def threads_waiting(self) -> int:
        return self.subject.threads

    async def wait(self, visit: Visit) -> Any:
        try:
            return await self.subject.wait()
        except asyncio.BrokenBarrierError:
            return "broken"

    def wait_sync(self, patience: float | None) -> Any:
        try:
            return self.subject.wait_sync(patience)
        except asyncio.BrokenBarrierError:
            return "broken"

    def came(self, waited: int, broken: bool, visit: Visit | None) -> None:
        if visit is not None and not broken and waited == self.parties - 1:
            assert visit.result == waited, "the last one need not wait"
            assert self.subject.n_waiting == 0

    @precondition(Crowd.room)
    @rule(where=LOOPS)
    def task_comes(self, where: int) -> None:
        waited, broken = self.subject.n_waiting, self.subject.broken
        self.came(waited, broken, self.come(where, self.wait, None))

    @precondition(Crowd.room)
    @rule(patience=st.sampled_from([None, None, 0]))
    def thread_comes(self, patience: float | None) -> None:
        waited, broken = self.subject.n_waiting, self.subject.broken
        visit = self.come_plain(lambda visit: self.wait_sync(patience))
        if patience is not None:
            until(lambda: visit.over)
            assert broken or visit.result == waited or self.subject.broken
        self.came(waited, broken, visit)

    @rule()
    def abort(self) -> None:
        self.subject.abort()
        assert self.subject.broken

    @rule()
    def reset(self) -> None:
        self.subject.reset()
        assert not self.subject.broken

    @invariant()
    def never_full(self) -> None:
        assert self.subject.n_waiting < self.parties
        assert not (self.subject.broken and self.subject.n_waiting)

    def teardown(self) -> None:
        self.settle()
        self.subject.abort()
        self.settle()
        self.end()
        assert {visit.result for visit in self.visits} <= {0, 1, 2, "broken", None}


class QueueModel(Crowd):
    """What was put is got, once, or still there; and room is never lost."""

    maxsize = 2
    most = 30
    kind: type[uringloop.Queue[int]] = uringloop.Queue

    def __init__(self) -> None:
        super().__init__()
        self.subject = self.kind(self.maxsize)
        self.put: list[int] = []
        self.got: list[int] = []

    def threads_waiting(self) -> int:
        found: Any = self.subject.statistics()
        return int(found["get"]["threads"] + found["put"]["threads"])

    async def do_put(self, visit: Visit) -> None:
        number = self.number(visit)
        await self.subject.put(number)
        self.put.append(number)

    async def do_get(self, visit: Visit) -> None:
        self.got.append(await self.subject.get())

    def number(self, visit: Visit) -> int:
        return self.visits.index(visit) * 7 % 31  # in no order

    @precondition(Crowd.room)
    @rule(where=LOOPS, gets=st.booleans(), patience=st.sampled_from([None, None, 0]))
    def task_comes(self, where: int, gets: bool, patience: float | None) -> None:
        self.come(where, self.do_get if gets else self.do_put, patience)

    @precondition(Crowd.room)
    @rule(gets=st.booleans(), patience=st.sampled_from([None, 0]))
    def thread_comes(self, gets: bool, patience: float | None) -> None:
        def work(visit: Visit) -> None:
            if gets:
                self.got.append(self.subject.get_sync(patience))
            else:
                self.subject.put_sync(self.number(visit), patience)
                self.put.append(self.number(visit))

        self.come_plain(work)

    @rule()
    def get_at_once(self) -> None:
        if not self.subject.empty():
            self.got.append(self.subject.get_nowait())

    @invariant()
    def never_above_its_size(self) -> None:
        assert not self.maxsize or self.subject.qsize() <= self.maxsize

    def teardown(self) -> None:
        for _ in range(len(self.visits)):
            self.settle()
            if not self.subject.empty():
                self.got.append(self.subject.get_nowait())
        self.settle()
        assert self.subject.empty()
        assert sorted(self.got) == sorted(self.put), "what was put was got, once"
        self.subject.shutdown()
        self.settle()
        self.end_quietly()

    def end_quietly(self) -> None:
        for visit in self.visits:
            if visit.task is not None and visit.task.done() and not visit.task.cancelled():
                assert isinstance(visit.task.exception(), QueueShutDown | None)
        self.end()


class UnlimitedQueueModel(QueueModel):
    maxsize = 0


class PriorityQueueModel(QueueModel):
    kind = uringloop.PriorityQueue


@pytest.mark.parametrize(
    "model", [ConditionModel, BarrierModel, QueueModel, UnlimitedQueueModel, PriorityQueueModel]
)
def test_against_a_plain_model(engine: str, model: type[Crowd]) -> None:
    play(model)
