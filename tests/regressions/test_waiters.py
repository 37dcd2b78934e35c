"""Waiters that become garbage together with what they wait for."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import uringloop
from uringloop._core.handoff.waitlist import Waiter


def waits() -> dict[str, Callable[[], tuple[Any, Any]]]:
    """What makes a primitive, and an awaitable that waits at it."""

    def lock() -> tuple[Any, Any]:
        made = uringloop.Lock()
        assert made.acquire_nowait()
        return made, made.acquire()

    def condition() -> tuple[Any, Any]:
        made = uringloop.Condition()
        assert made.acquire_nowait()
        return made, made.wait()

    def full_queue() -> tuple[Any, Any]:
        made: Any = uringloop.Queue(1)
        made.put_nowait(1)
        return made, made.put(2)

    def joined_queue() -> tuple[Any, Any]:
        made: Any = uringloop.Queue()
        made.put_nowait(1)
        return made, made.join()

    def other(make: Callable[[], Any], method: str) -> Callable[[], tuple[Any, Any]]:
        def pair() -> tuple[Any, Any]:
            made = make()
            return made, getattr(made, method)()

        return pair

    return {
        "lock": lock,
        "semaphore": other(lambda: uringloop.Semaphore(0), "acquire"),
        "event": other(uringloop.Event, "wait"),
        "auto-reset event": other(uringloop.AutoResetEvent, "wait"),
        "barrier": other(lambda: uringloop.Barrier(2), "wait"),
        "condition": condition,
        "queue that is empty": other(uringloop.Queue, "get"),
        "queue that is full": full_queue,
        "queue to join": joined_queue,
        "priority queue": other(uringloop.PriorityQueue, "get"),
    }


WAITS = waits()


@pytest.mark.parametrize("name", WAITS)
def test_a_primitive_is_collected_together_with_its_waiters(loop: Any, name: str) -> None:
    loop.set_exception_handler(lambda *_: None)  # the tasks are destroyed while they wait: meant
    tasks: list[weakref.ref[Any]] = []

    async def forgotten() -> None:
        _, wait = WAITS[name]()
        tasks.append(weakref.ref(asyncio.ensure_future(wait)))
        await asyncio.sleep(0)

    async def main() -> None:
        for _ in range(20):
            await forgotten()

    gc.collect()
    before = sum(type(found) is Waiter for found in gc.get_objects())
    loop.run_until_complete(main())
    for _ in range(2):
        gc.collect()
    assert [task() for task in tasks] == [None] * 20
    assert sum(type(found) is Waiter for found in gc.get_objects()) == before
