"""The waitlist through all orders of events: two loops stepped turn by turn, and what happens in between (a
release, a cancel, a loop that closes) at every possible place. One thread plays all: what makes threads differ is
only the order in which their steps reach the waitlist and the inboxes, and here every order comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import uringloop
from uringloop.sync import AutoResetEvent, Condition, Lock, Queue, Semaphore

Step = Callable[[], object]


def orders(*actors: list[Step]) -> Iterator[list[Step]]:
    """All orders of the actors' steps that keep each one's own."""
    if not any(actors):
        yield []
    for number, steps in enumerate(actors):
        if steps:
            for rest in orders(*actors[:number], steps[1:], *actors[number + 1 :]):
                yield [steps[0], *rest]


def turn(loop: Any) -> None:
    """One turn of the loop, if it is open."""
    if not loop.is_closed():
        loop.call_soon(loop.stop)
        loop.run_forever()


class Stage:
    """Two loops with a task each, and what the tasks got, in order."""

    def __init__(self, body: Callable[[Any, str], Any], *, names: str = "ab") -> None:
        self.got: list[str] = []
        self.loops = {name: uringloop.new_event_loop() for name in names}
        self.tasks = {name: loop.create_task(body(self, name)) for name, loop in self.loops.items()}

    def turns(self, name: str, count: int) -> list[Step]:
        return [lambda: turn(self.loops[name])] * count

    def cancel(self, name: str) -> None:
        if not self.loops[name].is_closed():
            self.loops[name].call_soon_threadsafe(self.tasks[name].cancel)

    def close(self, name: str) -> None:
        self.loops[name].close()

    def settle(self) -> None:
        for _ in range(6):
            for loop in self.loops.values():
                turn(loop)

    def end(self) -> None:
        for name, loop in self.loops.items():
            forget(self.tasks[name])
            loop.close()


def forget(task: Any) -> None:
    """Of a loop that closed: no complaints about what was never finished, or never begun."""
    task._log_destroy_pending = False
    task.get_coro().close()


def explore(build: Callable[[], tuple[Stage, list[list[Step]]]], check: Callable[[Stage], None]) -> int:
    """Play every order of the steps, each on a stage of its own."""
    stage, actors = build()
    stage.end()
    count = 0
    for picks in orders(*[[lambda i=i, j=j: (i, j) for j in range(len(a))] for i, a in enumerate(actors)]):  # type: ignore[misc]
        stage, actors = build()
        for pick in picks:
            actor, step = pick()  # type: ignore[misc]
            actors[actor][step]()
        stage.settle()
        check(stage)
        stage.end()
        count += 1
    return count


@pytest.mark.parametrize("event", ["nothing", "cancel", "close"])
def test_lock_in_every_order(engine: str, event: str) -> None:
    lock: Lock

    async def use(stage: Stage, name: str) -> None:
        async with lock:
            stage.got.append(name)
            await asyncio.sleep(0)

    def build() -> tuple[Stage, list[list[Step]]]:
        nonlocal lock
        lock = Lock()
        assert lock.acquire_nowait()
        stage = Stage(use)
        happens: dict[str, list[Step]] = {
            "nothing": [],
            "cancel": [lambda: stage.cancel("a")],
            "close": [lambda: stage.close("a")],
        }
        return stage, [stage.turns("a", 3), stage.turns("b", 3), [lock.release], happens[event]]

    def check(stage: Stage) -> None:
        held_by_a = event == "close" and stage.got[-1:] == ["a"] and not stage.tasks["a"].done()
        if held_by_a:
            return  # its loop closed while it was inside: it never lets go, as asyncio's would not
        assert stage.tasks["b"].done()
        assert stage.got.count("b") == 1
        assert not lock.locked()
        assert lock.waiting == 0
        if event == "nothing":
            assert sorted(stage.got) == ["a", "b"]

    assert explore(build, check) > 100


@pytest.mark.parametrize("event", ["cancel", "close"])
@pytest.mark.parametrize("make", [lambda: Semaphore(0), AutoResetEvent], ids=["semaphore", "auto reset"])
def test_permit_in_every_order(engine: str, event: str, make: Callable[[], Any]) -> None:
    permits: Any
    give: Step

    async def use(stage: Stage, name: str) -> None:
        await (permits.acquire() if isinstance(permits, Semaphore) else permits.wait())
        stage.got.append(name)

    def build() -> tuple[Stage, list[list[Step]]]:
        nonlocal permits, give
        permits = make()
        give = permits.release if isinstance(permits, Semaphore) else permits.set
        stage = Stage(use)
        happens = stage.cancel if event == "cancel" else stage.close
        return stage, [stage.turns("a", 2), stage.turns("b", 2), [give], [lambda: happens("a")]]

    def check(stage: Stage) -> None:
        assert stage.got in (["a"], ["b"]), "one permit: one of them, and it is not lost"
        if stage.got == ["a"]:
            assert permits.waiting == 1
        else:
            give()  # a's place, if its loop closed while it was in the line, is passed over
            assert permits.waiting == 0

    assert explore(build, check) > 100


@pytest.mark.parametrize("event", ["cancel", "close"])
@pytest.mark.parametrize("maxsize", [0, 1])
def test_queue_in_every_order(engine: str, event: str, maxsize: int) -> None:
    queue: Queue[str]

    async def use(stage: Stage, name: str) -> None:
        stage.got.append(await queue.get())

    def build() -> tuple[Stage, list[list[Step]]]:
        nonlocal queue
        queue = Queue(maxsize)
        stage = Stage(use)
        happens = stage.cancel if event == "cancel" else stage.close

        def put() -> None:
            queue.put_nowait("item")

        return stage, [stage.turns("a", 2), stage.turns("b", 2), [put], [lambda: happens("a")]]

    def check(stage: Stage) -> None:
        assert stage.got == ["item"]
        assert queue.empty()
        if maxsize:
            queue.put_nowait("the room is there again")

    assert explore(build, check) > 100


@pytest.mark.parametrize("event", ["cancel", "close"])
def test_putters_in_every_order(engine: str, event: str) -> None:
    queue: Queue[str]

    async def use(stage: Stage, name: str) -> None:
        await queue.put(name)

    def build() -> tuple[Stage, list[list[Step]]]:
        nonlocal queue
        queue = Queue(1)
        queue.put_nowait("first")
        stage = Stage(use)
        happens = stage.cancel if event == "cancel" else stage.close
        return stage, [stage.turns("a", 2), stage.turns("b", 2), [queue.get_nowait], [lambda: happens("a")]]

    def check(stage: Stage) -> None:
        found = queue.get_nowait()
        stage.settle()
        later = "" if queue.empty() else queue.get_nowait()
        assert found + later in ("b", "ab", "ba"), (
            "what was put once is there once, b's whatever happens to a"
        )
        assert stage.tasks["b"].done()
        assert ("a" in found + later) == (stage.tasks["a"].done() and not stage.tasks["a"].cancelled())

    assert explore(build, check) > 100


@pytest.mark.parametrize("event", ["nothing", "cancel"])
def test_condition_in_every_order(engine: str, event: str) -> None:
    condition: Condition

    async def use(stage: Stage, name: str) -> None:
        async with condition:
            await condition.wait()
            stage.got.append(name)

    def build() -> tuple[Stage, list[list[Step]]]:
        nonlocal condition
        condition = Condition()
        stage = Stage(use)
        for name in "ab":
            turn(stage.loops[name])

        def notify() -> None:
            while not condition.acquire_nowait():
                stage.settle()
            condition.notify()
            condition.release()

        happens: list[Step] = [lambda: stage.cancel("a")] if event == "cancel" else [notify]
        return stage, [stage.turns("a", 3), stage.turns("b", 3), [notify], happens]

    def check(stage: Stage) -> None:
        assert not condition.locked()
        if event == "nothing":
            assert sorted(stage.got) == ["a", "b"]
        else:
            assert stage.got in (["a"], ["b"]), "one notification: one acts on it, whoever is cancelled"

    assert explore(build, check) > 100
