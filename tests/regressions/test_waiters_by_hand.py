"""Waiters and awaitables that a program drives by hand, and ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import uringloop


@pytest.mark.parametrize("way", ["throw", "close"])
def test_a_waiter_ended_by_hand_cannot_be_reused(loop: Any, way: str) -> None:
    lock, ran = uringloop.Lock(), []

    async def main() -> None:
        assert lock.acquire_nowait()
        waiter = lock.acquire().__await__()
        next(waiter)
        lock.release()  # the waiter has it, and stands in the loop's queue
        for number in range(3):
            asyncio.get_running_loop().call_soon(ran.append, number)  # behind it
        if way == "close":
            waiter.close()
        else:
            with pytest.raises(ValueError):
                waiter.throw(ValueError)
        assert lock.acquire_nowait()
        with pytest.raises(RuntimeError, match="cannot reuse"):
            next(waiter)  # type: ignore[call-overload]
        await asyncio.sleep(0)
        lock.release()

    loop.run_until_complete(main())
    assert ran == [0, 1, 2]
    assert not lock.locked()


@pytest.mark.parametrize("granted", [False, True])
def test_a_closed_waiter_leaves_the_line_to_other_waiters(loop: Any, granted: bool) -> None:
    queue: uringloop.Queue[int] = uringloop.Queue()

    async def main() -> None:
        waiter = queue.get().__await__()
        next(waiter)
        if granted:
            queue.put_nowait(1)
        waiter.close()
        waiter.close()
        if not granted:
            queue.put_nowait(1)
        assert await queue.get() == 1
        with pytest.raises(RuntimeError, match="cannot reuse"):
            waiter.send(None)

    loop.run_until_complete(main())


@pytest.mark.contract
@pytest.mark.parametrize("way", ["throw", "close"])
@pytest.mark.parametrize("method", ["acquire", "wait", "get", "put", "join"])
def test_an_awaitable_ended_before_its_first_step_cannot_be_reused(
    loop: Any, engine: str, way: str, method: str
) -> None:
    kit: Any = asyncio if engine == "asyncio" else uringloop

    async def main() -> None:
        made: Any = {
            "acquire": lambda: kit.Lock().acquire(),
            "wait": lambda: kit.Event().wait(),
            "get": lambda: kit.Queue().get(),
            "put": lambda: kit.Queue().put(1),
            "join": lambda: kit.Queue().join(),
        }[method]()
        if way == "close":
            made.close()
        else:
            with pytest.raises(ValueError):
                made.throw(ValueError)
        with pytest.raises(RuntimeError, match="cannot reuse"):
            made.send(None)

    loop.run_until_complete(main())
