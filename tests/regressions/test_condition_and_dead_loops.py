"""A Condition whose lock several loops share, and a loop that dies at any moment of a task's wait(): the lock is never
left locked with no holder, nor free while somebody holds it, and no notification is lost with the loop. The
collector is switched off: what hangs must not depend on it."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

import uringloop
from uringloop.sync import Condition, Lock


class Waiting:
    """One task that waits, in one of the styles below, on a loop of its own."""

    def __init__(
        self,
        style: str,
        condition: Condition,
        lock: Lock,
        loop: Any,
    ) -> None:
        self.condition, self.lock = condition, lock
        self.inner: Any = None  # the task that waits for it
        self.acted = False
        self.loop = loop
        self.loop.set_exception_handler(lambda *_: None)
        self.task = self.loop.create_task(STYLES[style](self))

    def turn(self) -> None:
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()

    def wait_in_a_task(self, of: Coroutine[Any, Any, Any] | None = None) -> Any:
        self.inner = asyncio.ensure_future(of if of is not None else self.condition.wait())
        return self.inner

    async def stay(self) -> None:
        self.acted = True
        await asyncio.get_running_loop().create_future()

    async def directly(self) -> None:
        async with self.condition:
            await self.condition.wait()
            await self.stay()

    async def by_a_task(self) -> None:
        async with self.condition:
            await self.wait_in_a_task()
            await self.stay()

    async def by_the_lock(self) -> None:
        async with self.lock:
            await self.wait_in_a_task()
            await self.stay()

    async def by_a_helper(self) -> None:
        async def helper() -> None:
            await self.condition.wait()

        async with self.condition:
            await self.wait_in_a_task(helper())
            await self.stay()

    async def with_a_timeout(self) -> None:
        async with self.condition:
            await asyncio.wait_for(self.condition.wait(), 1000)
            await self.stay()

    async def with_release(self) -> None:
        await self.condition.acquire()
        try:
            await self.wait_in_a_task()
            await self.stay()
        finally:
            self.condition.release()

    async def without_release(self) -> None:
        await self.condition.acquire()
        await self.condition.wait()
        self.condition.release()
        self.acted = True

    async def released_by_a_coroutine(self) -> None:
        async def leave() -> None:
            self.condition.release()

        await self.condition.acquire()
        try:
            await self.wait_in_a_task()
            await self.stay()
        finally:
            await leave()

    async def with_a_stack(self) -> None:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.condition)
            await self.wait_in_a_task()
            await self.stay()

    async def acquired_by_a_task(self) -> None:
        await asyncio.ensure_future(self.condition.acquire())
        try:
            await self.wait_in_a_task()
            await self.stay()
        finally:
            self.condition.release()

    async def acquired_by_a_wrapper(self) -> None:
        condition = self.condition

        class Wrapper:
            async def __aenter__(self) -> None:
                await condition.acquire()

            async def __aexit__(self, *exc: object) -> None:
                condition.release()

        async with Wrapper():
            await self.wait_in_a_task()
            await self.stay()

    async def waiting_again(self) -> None:
        async with self.condition:
            try:
                await self.wait_in_a_task()
            except BaseException:
                try:
                    await self.condition.wait()
                except RuntimeError:  # this coroutine is destroyed, and has no lock to let go
                    return
            await self.stay()

    async def swallowing(self) -> None:
        async with self.condition:
            try:
                await self.wait_in_a_task()
            except BaseException:
                return
            await self.stay()


STYLES: dict[str, Callable[[Waiting], Coroutine[Any, Any, None]]] = {
    name: getattr(Waiting, name)
    for name in (
        "directly by_a_task by_the_lock by_a_helper with_a_timeout with_release without_release "
        "released_by_a_coroutine with_a_stack acquired_by_a_task acquired_by_a_wrapper waiting_again swallowing"
    ).split()
}


LOOPS = {"ours": uringloop.new_event_loop, "asyncio's": asyncio.SelectorEventLoop}


class Scene:
    """The task whose loop will die, one that waits behind it on a loop that lives, and this thread, which may hold the
    lock."""

    def __init__(self, kind: str, style: str, living: Any) -> None:
        self.lock = Lock()
        self.condition = Condition(self.lock)
        self.dying: Any = Waiting(style, self.condition, self.lock, LOOPS[kind]())
        self.until(self.dying, lambda: self.condition.statistics()["waiting"] == 1)
        if style == "with_a_timeout":  # before Python 3.12 wait_for made a task
            self.dying.inner = next(iter(asyncio.all_tasks(self.dying.loop) - {self.dying.task}), None)
        self.other = Waiting("directly", self.condition, self.lock, living)
        self.until(self.other, lambda: self.condition.statistics()["waiting"] == 2)
        self.holding = False
        self.notified = False  # and has not acted on it: so another is to
        self.inner_first = False
        self.way = ""

    def until(self, waiting: Waiting, true: Callable[[], bool]) -> None:
        for _ in range(20):
            if true():
                return
            waiting.turn()
        raise AssertionError("it does not come to that")

    def acquire(self) -> None:
        assert not self.holding
        self.holding = self.condition.acquire_nowait()

    def release(self) -> None:
        if self.holding:
            self.holding = False
            self.condition.release()

    def happens(self, event: str) -> None:
        """Before the loop dies."""
        if event == "cancelled":
            self.dying.task.cancel()
        elif event != "nothing":
            self.acquire()
            self.condition.notify()
            if event == "notified":
                self.release()

    def dies(self, way: str) -> None:
        """The caller collects, if that is the way."""
        dying, self.way = self.dying, way
        if way == "dropped":
            self.dying = None
            return
        dying.loop.close()
        if way == "kept":
            return
        tasks = [dying.task, *([dying.inner] if dying.inner is not None else [])]
        for task in tasks:
            task._log_destroy_pending = False
        if way == "collected":
            self.dying = None
            return
        for task in tasks if way == "outer first" else reversed(tasks):
            task.get_coro().close()

    def check_one_holder(self) -> None:
        for _ in range(8):
            assert not self.holding or not self.condition.acquire_nowait(), "two holders"
            self.other.turn()
        self.release()

    def check(self) -> None:
        condition = self.condition
        for _ in range(8):
            self.other.turn()
        assert self.other.acted is self.notified, "a notification was lost, or was more than one"
        if self.other.acted:  # it stays inside
            assert condition.locked()
            assert not condition.acquire_nowait()
            self.other.task.cancel()
            self.other.turn()
            self.other.turn()
        assert not condition.locked(), "locked, with no holder"
        with pytest.raises(RuntimeError):
            condition.release()
        for _ in range(2):
            assert condition.acquire_nowait()
            condition.notify_all()
            condition.release()
        assert not condition.locked() or self.other.task

    def destroy_what_was_kept(self) -> None:
        """While this thread holds the lock: the coroutine releases what its closed loop has handed on."""
        assert self.condition.acquire_nowait()
        tasks = [self.dying.task, *([self.dying.inner] if self.dying.inner is not None else [])]
        for task in reversed(tasks) if self.inner_first else tasks:
            task._log_destroy_pending = False
            task.get_coro().close()
        assert not self.condition.acquire_nowait(), "a dead coroutine has released the lock of another"
        self.condition.release()
        assert not self.condition.locked()

    def end(self) -> None:
        if not self.other.task.done():
            self.other.task.cancel()
            for _ in range(8):
                self.other.turn()
        assert self.other.task.done()
        assert not self.condition.locked()
        assert self.condition.statistics()["waiting"] == 0
        if self.dying is not None:
            self.dying.task._log_destroy_pending = False
            if self.dying.inner is not None:
                self.dying.inner._log_destroy_pending = False


def makes_sense(style: str, event: str, way: str) -> bool:
    if style == "without_release" and event == "cancelled":
        return False  # it ends with the lock: the program's fault
    # The collector does not come by a loop whose timer's handle a coroutine refers to as well.
    return (style, way) != ("with_a_timeout", "dropped")


WAYS = {
    "ours": ("outer first", "inner first", "collected", "dropped", "kept"),
    "asyncio's": ("collected", "kept"),
}
EVENTS = ("nothing", "notified", "notified, and the lock is held", "cancelled")


@pytest.fixture
def living(engine: str) -> Iterator[Any]:
    """The loop that lives."""
    loop = uringloop.new_event_loop()
    gc.disable()
    try:
        yield loop
    finally:
        gc.enable()
        loop.close()


@pytest.mark.relies_on("coroutine_frames")
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(("kind", "way"), [(kind, way) for kind in WAYS for way in WAYS[kind]])
def test_a_loop_that_ends_in_condition_wait_leaves_the_lock_to_other_loops(
    living: Any, kind: str, way: str, style: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # loops that are dropped unclosed
        for event in EVENTS:
            if makes_sense(style, event, way):
                play(kind, style, event, way, living)
        gc.collect()


def play(kind: str, style: str, event: str, way: str, living: Any) -> None:
    """All scenes of an event share their collections, which are what takes long."""
    scenes = list(until_death(kind, style, event, way, living))
    if any(scene.way in ("collected", "dropped") for scene in scenes):
        gc.collect()
    for scene in scenes:
        scene.check_one_holder()
    if way == "dropped":
        gc.collect()  # a loop that nobody closed was kept by the lock's line; now it has the lock
    for scene in scenes:
        scene.check()
        scene.end()
        if scene.way == "kept":
            scene.destroy_what_was_kept()


def until_death(kind: str, style: str, event: str, way: str, living: Any) -> Iterator[Scene]:
    for hold in (False, True):  # by this thread, while the loop dies and after
        for turns in range(5):  # of the loop, between the event and its death
            # The lock is released after so many of them; -1: not before the loop dies.
            for released in range(-1, turns if event.endswith("held") else 0):
                scene = Scene(kind, style, living)
                scene.happens(event)
                for number in range(turns):
                    scene.dying.turn()
                    if number == released:
                        scene.release()
                if hold and not scene.holding:
                    scene.acquire()
                acted = scene.dying.acted or (scene.dying.inner is not None and scene.dying.inner.done())
                scene.notified = event.startswith("notified") and not acted
                scene.inner_first = turns % 2 == 0
                way_now = way
                if kind != "ours" and way == "kept" and scene.condition.locked() and not scene.holding:
                    way_now = "collected"  # it is inside, and its loop can not tell that it is closed
                scene.dies(way_now)
                yield scene


def test_claims_of_tasks_that_never_release_are_not_kept(loop: Any) -> None:
    condition = Condition()

    async def without_release() -> None:
        await condition.acquire()
        await condition.wait()
        condition.release()

    async def main() -> None:
        for _ in range(500):
            coroutine = without_release()
            waiter = coroutine.send(None)
            assert waiter is not None
            coroutine.close()
            del coroutine, waiter
            assert not condition.locked()

    loop.run_until_complete(main())
    assert condition.statistics()["waiting"] == 0
    assert int(repr(condition._claims).partition("waiting=")[2].rstrip(">")) <= 64
