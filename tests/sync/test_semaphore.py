"""Semaphore: permits in order, never lost, never more than there are."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from uringloop.sync.semaphore import BoundedSemaphore, Semaphore


def test_never_more_inside_than_permits(threads: Any, factories: Any) -> None:
    semaphore, inside, most, done = Semaphore(3), 0, 0, 0

    async def use() -> None:
        async def once() -> None:
            nonlocal inside, most, done
            for _ in range(20):
                async with semaphore:
                    inside += 1
                    most = max(most, inside)
                    await asyncio.sleep(0)
                    inside -= 1
                    done += 1

        await asyncio.gather(*[once() for _ in range(5)])

    def plain() -> None:
        for _ in range(100):
            with semaphore:
                pass

    for factory in factories:
        threads.loop(use, factory=factory)
    threads.plain(plain)
    threads.join()
    assert semaphore.statistics()["value"] == 3
    assert most <= 3


def test_serves_in_order_and_passes_on_what_is_cancelled(loop: Any) -> None:
    semaphore, order = Semaphore(0), []

    async def use(number: int) -> None:
        await semaphore.acquire()
        order.append(number)

    async def main() -> None:
        tasks = [asyncio.create_task(use(number)) for number in range(6)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0)
        semaphore.release()
        semaphore.release()
        tasks[2].cancel()  # granted already
        for _ in range(4):
            await asyncio.sleep(0)
        assert order == [0, 3]
        semaphore.release()
        semaphore.release()
        await asyncio.wait(tasks)
        assert order == [0, 3, 4, 5]
        assert semaphore.locked()

    loop.run_until_complete(main())


def test_bounded_by_none_is_released_to_one_that_waits(loop: Any) -> None:
    semaphore = BoundedSemaphore(0)

    async def main() -> None:
        task = asyncio.create_task(semaphore.acquire())
        await asyncio.sleep(0)
        semaphore.release()
        assert await task
        with pytest.raises(ValueError, match="released too many times"):
            semaphore.release()

    loop.run_until_complete(main())


def test_bounded_refuses_a_release_too_many(engine: str) -> None:
    semaphore = BoundedSemaphore(2)
    with pytest.raises(ValueError, match="BoundedSemaphore released too many times"):
        semaphore.release()
    assert semaphore.acquire_nowait()
    assert semaphore.acquire_sync()
    assert not semaphore.acquire_nowait()
    assert not semaphore.acquire_sync(0)
    semaphore.release()
    semaphore.release()
    with pytest.raises(ValueError):
        semaphore.release()
    assert repr(semaphore) == "<BoundedSemaphore value=2 waiting=0>"
    with pytest.raises(ValueError):
        Semaphore(-1)


def test_subclass_in_python_has_its_release_called(loop: Any) -> None:
    released = []

    class Noisy(Semaphore):
        def release(self) -> None:
            released.append(self)
            super().release()

    async def main() -> None:
        async with Noisy():
            pass

    loop.run_until_complete(main())
    assert len(released) == 1
