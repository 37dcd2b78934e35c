"""What two and three threads do to an inbox and to a line, in every order: each program below is a thread, which stops
wherever the real code lets its guard go; all orders of their steps are played, each on an inbox or line of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import uringloop

steps = pytest.importorskip("uringloop._core.handoff.steps", reason="only a debug build has it")

# A program yields what it waits for before its next step: it can go on when that is true.
Program = Iterator[Callable[[], bool]]


def always() -> bool:
    return True


def explore(build: Callable[[], tuple[list[Program], Callable[[], None]]]) -> int:
    """Every order, depth first: a path is a list of choices among the programs that can go on."""
    path: list[tuple[int, int]] = []  # the choice made, and how many there were
    played = 0
    while True:
        programs, check = build()
        waits: list[Callable[[], bool] | None] = [next(program) for program in programs]
        depth = 0
        while True:
            able = [number for number, wait in enumerate(waits) if wait is not None and wait()]
            if not able:
                break
            if depth == len(path):
                path.append((0, len(able)))
            assert path[depth][1] == len(able), "the same steps, the same choices"
            chosen = able[path[depth][0]]
            waits[chosen] = next(programs[chosen], None)
            depth += 1
        assert waits == [None] * len(programs), f"a thread waits for ever after {path}"
        check()
        played += 1
        while path and path[-1][0] + 1 == path[-1][1]:
            path.pop()
        if not path:
            return played
        path[-1] = (path[-1][0] + 1, path[-1][1])


class Side:
    """A loop's thread before its inbox, as Loop.turn has it, until it has got `count`."""

    def __init__(self, count: int) -> None:
        self.inbox = steps.InboxSteps()
        self.got: list[int] = []
        self.count, self.sleeps = count, 0

    def loop(self) -> Program:
        while len(self.got) < self.count:
            yield always
            if self.inbox.filled():
                yield always
                self.got += self.inbox.take()
                continue
            yield always
            if self.inbox.fall_asleep():
                self.sleeps += 1
                yield self.inbox.woken
                assert self.inbox.end_sleep() == 1
                yield always
                self.inbox.wake_up()
        yield always

    def push(self, *numbers: int) -> Program:
        for number in numbers:
            yield always
            assert self.inbox.try_push(number)

    def push_batch(self, *numbers: int) -> Program:
        yield always
        assert self.inbox.try_push_all(numbers)


@pytest.mark.parametrize("threads", ["one", "two", "three", "batches"])
def test_inbox_loses_no_wake_in_any_order(threads: str) -> None:
    def build() -> tuple[list[Program], Callable[[], None]]:
        side = Side(4)
        others = {
            "one": [side.push(1, 2, 3, 4)],
            "two": [side.push(1, 2), side.push(3, 4)],
            "three": [side.push(1), side.push(2), side.push(3, 4)],
            "batches": [side.push_batch(1, 2), side.push_batch(3, 4)],
        }[threads]

        def check() -> None:
            assert sorted(side.got) == [1, 2, 3, 4]
            for one, next in ((1, 2), (3, 4)):
                assert threads == "three" or side.got.index(one) < side.got.index(next)
            assert side.inbox.wakes == side.sleeps, "one wake a sleep, and none for who is awake"

        return [side.loop(), *others], check

    assert explore(build) >= {"one": 100, "two": 500, "three": 1000, "batches": 30}[threads]


def test_inbox_that_closes_refuses_or_has_it() -> None:
    def build() -> tuple[list[Program], Callable[[], None]]:
        inbox, accepted, got = steps.InboxSteps(), [], []

        def pusher(number: int) -> Program:
            yield always
            if inbox.try_push(number):
                accepted.append(number)

        def closer() -> Program:
            yield always
            inbox.close()
            yield always
            got.extend(inbox.take())

        def check() -> None:
            assert sorted(got) == sorted(accepted)

        return [pusher(1), pusher(2), closer()], check

    assert explore(build) >= 12


class Users:
    """Threads that take the lock in turn, hold it over a step, and release it in two."""

    def __init__(self) -> None:
        self.lock = uringloop.Lock()
        self.line = steps.LineSteps(self.lock)
        self.inside: list[str] = []
        self.arrived: list[str] = []
        self.served: list[str] = []

    def give_back(self) -> Program:
        while True:
            yield always
            waiter = self.line.pick()
            if waiter is None:
                return
            yield always
            if self.line.deliver(waiter):
                return

    def use(self, name: str, patient: bool = True) -> Program:
        yield always
        found = self.line.enter()
        self.arrived.append(name)
        if found is not True:
            yield (
                (lambda: self.line.woken(found)) if patient else always
            )  # its time may be over at any moment
            if not self.line.leave(found):
                return
        assert not self.inside, f"{name} is inside with {self.inside}"
        self.inside.append(name)
        self.served.append(name)
        yield always
        self.inside.remove(name)
        yield from self.give_back()


@pytest.mark.parametrize("impatient", ["", "b", "bc"])
def test_line_of_threads_in_any_order(impatient: str) -> None:
    def build() -> tuple[list[Program], Callable[[], None]]:
        users = Users()

        def check() -> None:
            assert not users.lock.locked()
            assert users.lock.waiting == 0
            assert users.served == [name for name in users.arrived if name in users.served], (
                "first come, first served"
            )
            assert set("abc") - set(impatient) <= set(users.served)

        def twice(name: str) -> Program:
            for _ in range(2):
                yield from users.use(name, name not in impatient)

        others = [users.use(name, name not in impatient) for name in "bc"]
        return [twice("a") if not impatient else users.use("a"), *others], check

    assert explore(build) >= 400


@pytest.mark.parametrize("event", ["cancel", "close"])
def test_line_of_a_task_and_a_thread_in_any_order(event: str) -> None:
    loops: list[Any] = []

    def build() -> tuple[list[Program], Callable[[], None]]:
        users = Users()
        loop = uringloop.new_event_loop()
        loops.append(loop)
        assert users.line.enter() is True  # held until `holder` gives it back

        async def once() -> None:
            try:
                await users.lock.acquire()
            except BaseException:
                users.served.append("cancelled")
                raise
            users.served.append("task")
            while (waiter := users.line.pick()) is not None and not users.line.deliver(waiter):
                pass

        task = loop.create_task(once())

        def turn() -> None:
            if not loop.is_closed():
                loop.call_soon(loop.stop)
                loop.run_forever()

        def turns() -> Program:
            for _ in range(2):
                yield always
                turn()

        def happens() -> Program:
            yield always
            if event == "cancel" and not loop.is_closed():
                task.cancel()
            elif event == "close":
                loop.close()

        def check() -> None:
            for _ in range(4):
                turn()
            task._log_destroy_pending = False
            task.get_coro().close()
            assert users.served.count("thread") == 1
            assert not users.lock.locked()
            assert users.lock.waiting == 0
            loop.close()

        return [turns(), users.give_back(), patient(users, turn), happens()], check

    def patient(users: Users, turn: Callable[[], None]) -> Program:
        """A thread that wants it too; while it waits, the task's loop runs on."""
        yield always
        found = users.line.enter()
        if found is not True:

            def woken() -> bool:
                turn()
                return bool(users.line.woken(found))

            yield woken
            assert users.line.leave(found)
        users.served.append("thread")
        yield from users.give_back()

    assert explore(build) >= 100
