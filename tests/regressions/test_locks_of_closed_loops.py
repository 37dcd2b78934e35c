"""A task holds the lock of a Condition when its loop is closed, and is not destroyed: the lock goes to those who wait,
on other loops and in plain threads, and what the dead coroutine releases later is not theirs. No collection helps."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from weakref import ref

import pytest

import uringloop
from uringloop.sync import Condition, Lock

Hold = Callable[[Condition], Coroutine[Any, Any, None]]


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


async def by_the_condition(condition: Condition) -> None:
    async with condition:
        await forever()


async def by_the_lock(condition: Condition) -> None:
    async with condition._lock:
        await forever()


async def without_waiting(condition: Condition) -> None:
    assert condition.acquire_nowait()
    try:
        await forever()
    finally:
        condition.release()


async def by_a_task(condition: Condition) -> None:
    await asyncio.ensure_future(condition.acquire())
    try:
        await forever()
    finally:
        condition.release()


async def with_a_timeout(condition: Condition) -> None:
    await asyncio.wait_for(condition.acquire(), 1000)
    try:
        await forever()
    finally:
        condition.release()


async def with_a_stack(condition: Condition) -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(condition)
        await forever()


async def in_a_generator(condition: Condition) -> None:
    @asynccontextmanager
    async def held() -> Any:
        async with condition:
            yield

    async with held():
        await forever()


async def by_a_wrapper(condition: Condition) -> None:
    class Wrapper:
        async def __aenter__(self) -> None:
            await condition.acquire()

        async def __aexit__(self, *exc: object) -> None:
            condition.release()

    async with Wrapper():
        await forever()


async def after_a_wait(condition: Condition) -> None:
    async with condition:
        waiting = asyncio.ensure_future(condition.wait())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        async with condition:
            condition.notify()
        await waiting
        await forever()


HOLDS: list[Hold] = [
    by_the_condition,
    by_the_lock,
    without_waiting,
    by_a_task,
    with_a_timeout,
    with_a_stack,
    in_a_generator,
    by_a_wrapper,
    after_a_wait,
]


class OwnWays(Lock):
    """A lock whose class has an acquire() and a release() of its own."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def acquire(self) -> Any:
        self.calls.append("acquire")
        return super().acquire()

    def release(self) -> None:
        self.calls.append("release")
        super().release()


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.collect()


def turns(loop: Any, count: int = 8) -> None:
    for _ in range(count):
        loop.call_soon(loop.stop)
        loop.run_forever()


def closed_while_held(hold: Hold, condition: Condition, new_loop: Callable[[], Any]) -> Any:
    """The task, which a reference of ours keeps alive."""
    loop = new_loop()
    loop.set_exception_handler(lambda *_: None)
    task = loop.create_task(hold(condition))
    turns(loop)
    assert condition.locked()
    assert not task.done()
    task._log_destroy_pending = False
    return task


def destroy(task: Any) -> None:
    task.get_coro().close()


@pytest.mark.parametrize("lock", [Lock, OwnWays])
@pytest.mark.parametrize("hold", HOLDS)
def test_the_lock_is_free_once_the_loop_of_its_holder_is_closed(
    new_loop: Callable[[], Any], hold: Hold, lock: type[Lock]
) -> None:
    condition = Condition(lock())
    task = closed_while_held(hold, condition, new_loop)
    task.get_loop().close()
    assert not condition.locked()
    assert condition.acquire_nowait()
    destroy(task)
    assert not condition.acquire_nowait(), "the dead coroutine has released the lock of another"
    condition.release()
    assert not condition.locked()
    with pytest.raises(RuntimeError):
        condition.release()


@pytest.mark.parametrize("hold", HOLDS)
def test_waiters_acquire_the_lock_of_a_closed_loop_in_order(new_loop: Callable[[], Any], hold: Hold) -> None:
    condition = Condition()
    task = closed_while_held(hold, condition, new_loop)
    loop, seen = new_loop(), []

    async def wait_for_it(number: int) -> None:
        async with condition:
            seen.append(number)
            if number == 0:
                destroy(task)
            await asyncio.sleep(0)
            assert seen[-1] == number, "two holders"

    same = task.get_loop().create_task(wait_for_it(-1))  # it dies with the loop
    same._log_destroy_pending = False
    turns(task.get_loop())
    tasks = [loop.create_task(wait_for_it(number)) for number in range(3)]
    turns(loop)
    assert seen == []
    task.get_loop().close()
    loop.run_until_complete(asyncio.wait_for(asyncio.gather(*tasks), 30))
    assert seen == [0, 1, 2]
    assert not condition.locked()


def test_a_waiting_thread_acquires_the_lock_of_a_closed_loop(new_loop: Callable[[], Any]) -> None:
    condition = Condition()
    task = closed_while_held(by_the_condition, condition, new_loop)
    acquired: list[bool] = []
    thread = threading.Thread(target=lambda: acquired.append(condition.acquire_sync(30)))
    thread.start()
    while not condition._lock.statistics()["waiting"]:
        pass
    task.get_loop().close()
    thread.join()
    assert acquired == [True]
    destroy(task)
    assert not condition.acquire_nowait()
    condition.release()


@pytest.mark.parametrize("known", [True, False])
def test_a_task_of_a_closed_loop_cannot_wait_with_a_lock_that_it_lost(
    new_loop: Callable[[], Any], known: bool
) -> None:
    condition, refused = Condition(), []

    async def hold(_: Condition) -> None:
        if known:
            await condition.acquire()
        else:
            await asyncio.ensure_future(condition.acquire())
        try:
            await forever()
        except GeneratorExit:
            try:
                await condition.wait()
            except RuntimeError as error:
                refused.append(str(error))
            raise
        finally:
            condition.release()

    task = closed_while_held(hold, condition, new_loop)
    task.get_loop().close()
    assert condition.acquire_nowait()
    destroy(task)
    assert refused == ["cannot wait on un-acquired lock"]
    assert not condition.acquire_nowait()
    condition.release()


def test_closing_the_loop_releases_all_locks_of_a_task(new_loop: Callable[[], Any]) -> None:
    conditions = [Condition() for _ in range(100)]

    async def hold() -> None:
        async with AsyncExitStack() as stack:
            for condition in conditions:
                await stack.enter_async_context(condition)
            await forever()

    loop = new_loop()
    task = loop.create_task(hold())
    turns(loop)
    task._log_destroy_pending = False
    assert all(condition.locked() for condition in conditions)
    loop.close()
    assert not any(condition.locked() for condition in conditions)


def test_a_lock_left_locked_by_a_finished_task_stays_locked(new_loop: Callable[[], Any]) -> None:
    """With asyncio's lock any task may release it, also one of a later loop."""
    condition, loop = Condition(), new_loop()
    loop.run_until_complete(condition.acquire())
    loop.close()
    assert condition.locked()
    loop = new_loop()

    async def release() -> None:
        condition.release()

    loop.run_until_complete(release())
    assert not condition.locked()


def test_an_error_of_a_custom_release_does_not_keep_the_loop_open(new_loop: Callable[[], Any]) -> None:
    class Refusing(Lock):
        def release(self) -> None:
            raise OSError("not now")

    condition = Condition(Refusing())
    task = closed_while_held(by_the_condition, condition, new_loop)
    reports: list[Any] = []
    task.get_loop().set_exception_handler(lambda _, context: reports.append(context))
    task.get_loop().close()
    assert [str(report["exception"]) for report in reports] == ["not now"]
    with pytest.raises(OSError, match="not now"):
        destroy(task)


def test_closing_the_loop_does_not_release_a_lock_with_a_later_holder(new_loop: Callable[[], Any]) -> None:
    condition = Condition()

    async def hold() -> None:
        await condition.acquire()
        await forever()

    task = closed_while_held(lambda _: hold(), condition, new_loop)
    condition.release()  # not by its holder: the lock does not mind
    assert condition.acquire_nowait()
    task.get_loop().close()
    assert not condition.acquire_nowait()
    condition.release()
    assert not condition.locked()


def test_a_lock_keeps_no_closed_loop_alive(new_loop: Callable[[], Any]) -> None:
    condition, loop = Condition(), uringloop.new_event_loop()
    seen = ref(loop)
    task = loop.create_task(by_the_condition(condition))
    turns(loop)
    loop.close()
    destroy(task)
    task._log_destroy_pending = False
    del loop, task
    gc.collect()  # the task and the future that it awaits refer to each other
    assert seen() is None
    assert not condition.locked()
