"""Queues, semaphores and barriers of numbers that are no small ints, as asyncio takes them."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

import uringloop


def kit_of(engine: str) -> Any:
    return asyncio if engine == "asyncio" else uringloop


@pytest.mark.contract
@pytest.mark.parametrize("size", [math.inf, math.nan, 1e300, 10**40, 0, -1, -math.inf])
def test_a_queue_with_a_huge_or_unlimited_size_never_fills_up(loop: Any, engine: str, size: float) -> None:
    async def main() -> None:
        queue = kit_of(engine).Queue(size)
        for number in range(10):
            queue.put_nowait(number)
        assert not queue.full()
        assert queue.maxsize is size

    loop.run_until_complete(main())


@pytest.mark.contract
@pytest.mark.parametrize("size", [1.5, 2.0])
def test_a_queue_accepts_a_float_as_its_size(loop: Any, engine: str, size: float) -> None:
    async def main() -> None:
        queue = kit_of(engine).Queue(size)
        queue.put_nowait(1)
        queue.put_nowait(2)
        assert queue.full()
        with pytest.raises(asyncio.QueueFull):
            queue.put_nowait(3)

    loop.run_until_complete(main())


@pytest.mark.contract
@pytest.mark.parametrize("value", [2.0, math.inf, 10**40, True])
def test_a_semaphore_accepts_floats_and_huge_numbers(loop: Any, engine: str, value: float) -> None:
    async def main() -> None:
        semaphore = kit_of(engine).Semaphore(value)
        assert semaphore._value == value or value == 10**40
        for _ in range(min(int(min(value, 5)), 5)):
            assert not semaphore.locked()
            await semaphore.acquire()
        assert semaphore.locked() == (value <= 5)
        semaphore.release()
        assert not semaphore.locked()

    loop.run_until_complete(main())


def test_semaphores_and_barriers_refuse_fractions(engine: str) -> None:
    for value in (0.5, 1.5, math.nan):
        for kind in (uringloop.Semaphore, uringloop.BoundedSemaphore):
            with pytest.raises(ValueError):
                kind(value)
    with pytest.raises(ValueError):
        uringloop.Barrier(1.5)


@pytest.mark.contract
def test_a_barrier_accepts_a_float_that_is_whole(loop: Any, engine: str) -> None:
    async def main() -> None:
        barrier = kit_of(engine).Barrier(2.0)
        assert sorted(await asyncio.gather(barrier.wait(), barrier.wait())) == [0, 1]

    loop.run_until_complete(main())
