"""Which waiting tasks a live object can still wake, by the references of futures made by hand."""

from __future__ import annotations

import asyncio
import ctypes
import functools
import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from uringloop._core.lifetime.reachability import unreachable

pytestmark = pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="without the GIL, references can't be counted"
)


class Box:
    """An object with attributes, to which there can be weak references."""

    future: asyncio.Future[Any]


async def wait(box: Box) -> None:
    box.future = asyncio.get_running_loop().create_future()
    await box.future


async def wait_deep(box: Box) -> None:
    async def inner() -> None:
        await wait(box)

    await inner()


async def wait_in_a_generator(box: Box) -> None:
    async def values() -> Any:
        await wait(box)
        yield 1

    async for _ in values():
        pass


async def wait_in_a_cycle(box: Box) -> None:
    box.itself = [box]  # type: ignore[attr-defined]
    await wait(box)


def settle(loop: Any) -> None:
    for _ in range(5):
        loop.run_until_complete(asyncio.sleep(0))


def lost(loop: Any, tasks: list[asyncio.Task[Any]]) -> list[bool]:
    settle(loop)
    return unreachable(tasks)


def end(loop: Any, tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.wait(tasks))


@pytest.mark.parametrize("work", [wait, wait_deep, wait_in_a_generator, wait_in_a_cycle])
def test_a_future_that_only_its_own_task_leads_to_is_lost(loop: Any, work: Callable[[Box], Any]) -> None:
    box = Box()
    tasks = [loop.create_task(work(box))]
    held = lost(loop, tasks)
    del box
    assert (held, lost(loop, tasks)) == ([False], [True])
    end(loop, tasks)


def by_a_reference_of_c(box: Box) -> Callable[[], object]:
    """As a C library keeps it: the collector does not know who has this reference."""
    python = ctypes.pythonapi
    python.Py_IncRef(ctypes.py_object(box))
    address = id(box)
    return lambda: python.Py_DecRef(ctypes.cast(address, ctypes.py_object))


def by_a_weak_reference(box: Box) -> Callable[[], object]:
    found = weakref.ref(box)
    return lambda: found


def by_an_untracked_object(box: Box) -> Callable[[], object]:
    return memoryview(ctypes.py_object(box)).release


def by_a_generator(box: Box) -> Callable[[], object]:
    def values() -> Any:
        yield 1
        yield box

    found = values()
    next(found)
    return found.close


@pytest.mark.parametrize(
    "hold", [by_a_reference_of_c, by_a_weak_reference, by_an_untracked_object, by_a_generator]
)
def test_what_any_other_object_leads_to_is_not_lost(loop: Any, hold: Callable[[Box], Any]) -> None:
    box = Box()
    tasks = [loop.create_task(wait(box))]
    settle(loop)
    release = hold(box)
    del box
    assert lost(loop, tasks) == [False]
    release()
    del release
    gc.collect()
    assert lost(loop, tasks) == [True]
    end(loop, tasks)


def test_a_task_to_which_an_unknown_object_refers_is_not_lost(loop: Any) -> None:
    """Of a thread, for one: it may cancel the task."""
    tasks = [loop.create_task(wait(Box()))]
    task = tasks[0]
    assert lost(loop, tasks) == [False]
    del task
    assert lost(loop, tasks) == [True]
    end(loop, tasks)


def test_a_frozen_object_is_live(loop: Any) -> None:
    tasks = [loop.create_task(wait(Box()))]
    settle(loop)
    gc.freeze()
    assert unreachable(tasks) == [False]
    end(loop, tasks)


def test_a_task_that_waits_for_a_lost_task_is_lost(loop: Any) -> None:
    async def wait_for(task: asyncio.Task[None]) -> None:
        await task

    tasks = [loop.create_task(wait(Box()))]
    tasks.append(loop.create_task(wait_for(tasks[0])))
    tasks.append(loop.create_task(wait_for(tasks[1])))
    assert lost(loop, tasks[::-1]) == [True, True, True]
    end(loop, tasks)


def test_a_task_that_a_live_task_leads_to_is_not_lost(loop: Any) -> None:
    """The first of the tasks is live, and has the second's future; so on."""
    first, second, third = Box(), Box(), Box()

    async def wait_with(own: Box, others: Box) -> None:
        await wait(own)
        others.future.set_result(None)

    tasks = [
        loop.create_task(wait(third)),
        loop.create_task(wait_with(second, third)),
        loop.create_task(wait_with(first, second)),
    ]
    del second, third
    assert lost(loop, tasks) == [False, False, False]
    del first
    assert lost(loop, tasks) == [True, True, True]
    end(loop, tasks)


def test_a_task_that_is_not_asked_about_is_live(loop: Any) -> None:
    box = Box()

    async def wake_later(box: Box) -> None:
        await asyncio.sleep(3600)
        box.future.set_result(None)

    tasks = [loop.create_task(wait(box)), loop.create_task(wake_later(box))]
    del box
    assert lost(loop, tasks[:1]) == [False]
    end(loop, tasks)


def by_a_timeout(loop: Any, task: asyncio.Task[Any]) -> Any:
    return loop.call_later(3600, task.cancel)


def by_a_partial(loop: Any, task: asyncio.Task[Any]) -> Any:
    return loop.call_later(3600, functools.partial(asyncio.Task.cancel, task))


def by_arguments(loop: Any, task: asyncio.Task[Any]) -> Any:
    return loop.call_later(3600, asyncio.Task.cancel, task)


def by_a_closure(loop: Any, task: asyncio.Task[Any]) -> Any:
    return loop.call_later(3600, lambda: task.cancel())


@pytest.mark.parametrize("cancel", [by_a_timeout, by_a_partial, by_arguments, by_a_closure])
def test_a_task_that_a_callback_may_cancel_is_not_lost(
    loop: Any, cancel: Callable[..., asyncio.TimerHandle]
) -> None:
    tasks = [loop.create_task(wait(Box()))]
    timer = cancel(loop, tasks[0])
    assert lost(loop, tasks) == [False]
    timer.cancel()
    del timer
    gc.collect()
    assert lost(loop, tasks) == [True]
    end(loop, tasks)


def test_a_task_with_a_timeout_is_not_lost(loop: Any) -> None:
    async def limited() -> None:
        async with asyncio.timeout(3600):
            await wait(Box())

    tasks = [loop.create_task(limited())]
    assert lost(loop, tasks) == [False]
    end(loop, tasks)


def test_a_task_that_waits_for_nothing_is_not_lost(loop: Any) -> None:
    async def nothing() -> None:
        pass

    tasks = [loop.create_task(nothing())]
    assert unreachable(tasks) == [False]
    loop.run_until_complete(tasks[0])
    assert unreachable(tasks) == [False]
    assert unreachable([]) == []
