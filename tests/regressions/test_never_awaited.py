"""Awaitables of the primitives that are never awaited."""

from __future__ import annotations

import asyncio
import gc
import warnings
from typing import Any

import pytest

import uringloop

METHODS = {
    "Lock.acquire": lambda kit: kit.Lock().acquire(),
    "Semaphore.acquire": lambda kit: kit.BoundedSemaphore().acquire(),
    "Event.wait": lambda kit: kit.Event().wait(),
    "Condition.wait": lambda kit: kit.Condition().wait(),
    "Condition.wait_for": lambda kit: kit.Condition().wait_for(lambda: True),
    "Barrier.wait": lambda kit: kit.Barrier(2).wait(),
    "Queue.get": lambda kit: kit.LifoQueue().get(),
    "Queue.put": lambda kit: kit.PriorityQueue().put(1),
    "Queue.join": lambda kit: kit.Queue().join(),
}


def kit_of(engine: str) -> Any:
    return asyncio if engine == "asyncio" else uringloop


def warned(make: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        make()
        gc.collect()
    return [str(warning.message) for warning in found if warning.category is RuntimeWarning]


@pytest.mark.contract
@pytest.mark.parametrize("name", METHODS)
def test_calls_that_are_never_awaited_emit_a_runtime_warning(loop: Any, engine: str, name: str) -> None:
    async def forget() -> None:
        METHODS[name](kit_of(engine))

    async def close() -> None:
        METHODS[name](kit_of(engine)).close()

    assert warned(lambda: loop.run_until_complete(forget())) == [f"coroutine '{name}' was never awaited"]
    assert warned(lambda: loop.run_until_complete(close())) == []


@pytest.mark.contract
def test_awaited_calls_emit_no_warning(loop: Any, engine: str) -> None:
    kit = kit_of(engine)

    async def main() -> None:
        lock, event, queue = kit.Lock(), kit.Event(), kit.Queue()
        await lock.acquire()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(lock.acquire(), 0.001)
        with pytest.raises(asyncio.TimeoutError):
            async with asyncio.timeout(0.001):
                await event.wait()
        never = asyncio.ensure_future(queue.get())
        never.cancel()  # before its first step
        await asyncio.wait([never])
        lock.release()
        assert await asyncio.gather(lock.acquire(), queue.put(1), queue.get()) == [True, None, 1]

    assert warned(lambda: loop.run_until_complete(main())) == []


def test_the_warning_of_an_awaitable_in_a_cycle_contains_its_name(loop: Any) -> None:
    class Around:
        pass

    async def forget() -> None:
        around: Any = Around()
        around.self, around.wait = around, uringloop.Queue[Any]().put(around)

    assert warned(lambda: loop.run_until_complete(forget())) == ["coroutine 'Queue.put' was never awaited"]


@pytest.mark.contract
def test_a_task_names_the_method_that_it_runs(loop: Any, engine: str) -> None:
    async def main() -> None:
        task = asyncio.ensure_future(kit_of(engine).Event().wait())
        assert "coro=<Event.wait()" in repr(task)
        task.cancel()
        await asyncio.wait([task])

    loop.run_until_complete(main())
