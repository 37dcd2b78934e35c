"""Barrier: all or none."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from uringloop.sync.barrier import Barrier


def test_lets_all_through_at_once_with_a_number_each(loop: Any) -> None:
    barrier = Barrier(3)

    async def main() -> None:
        tasks = [asyncio.create_task(barrier.wait()) for _ in range(2)]
        await asyncio.sleep(0)
        assert barrier.n_waiting == 2
        async with barrier as number:
            assert number == 2
        assert await asyncio.gather(*tasks) == [0, 1]
        assert barrier.n_waiting == 0

    loop.run_until_complete(main())


def test_waiter_that_leaves_is_not_counted(loop: Any) -> None:
    barrier = Barrier(2)

    async def main() -> None:
        gone = asyncio.create_task(barrier.wait())
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        stays = asyncio.create_task(barrier.wait())
        await asyncio.sleep(0)
        assert not stays.done()
        assert sorted([await barrier.wait(), await stays]) == [0, 1]

    loop.run_until_complete(main())


def test_reset_and_abort_fail_the_waiters(loop: Any) -> None:
    barrier = Barrier(2)

    async def main() -> None:
        task = asyncio.create_task(barrier.wait())
        await asyncio.sleep(0)
        await barrier.reset()
        with pytest.raises(asyncio.BrokenBarrierError):
            await task
        assert not barrier.broken
        task = asyncio.create_task(barrier.wait())
        await asyncio.sleep(0)
        barrier.abort()
        with pytest.raises(asyncio.BrokenBarrierError):
            await task
        with pytest.raises(asyncio.BrokenBarrierError):
            await barrier.wait()
        assert repr(barrier) == "<Barrier broken waiting=0/2>"
        barrier.reset()
        assert not barrier.broken
        assert sorted(await asyncio.gather(barrier.wait(), barrier.wait())) == [0, 1]

    loop.run_until_complete(main())


def test_barrier_works_across_loops_and_threads(threads: Any, factories: Any) -> None:
    barrier, rounds, at = Barrier(5), 30, [0] * 5

    async def go(me: int) -> None:
        for turn in range(rounds):
            at[me] = turn
            await barrier.wait()
            assert all(other >= turn for other in at)

    def plain(me: int) -> None:
        for turn in range(rounds):
            at[me] = turn
            barrier.wait_sync(20)
            assert all(other >= turn for other in at)

    for me, factory in enumerate(factories):
        threads.loop(go, me, factory=factory)
    threads.plain(plain, 4)
    threads.join()


def test_sync_wait_that_times_out_breaks_it(engine: str) -> None:
    barrier = Barrier(2)
    with pytest.raises(asyncio.BrokenBarrierError):
        barrier.wait_sync(0.001)
    assert barrier.broken
    with pytest.raises(ValueError):
        Barrier(0)


def test_party_that_times_out_in_the_last_moment_gets_its_number(threads: Any, engine: str) -> None:
    for turn in range(200):
        barrier, numbers = Barrier(2), []

        def wait(seconds: float, barrier: Barrier = barrier, numbers: list[int] = numbers) -> None:
            with suppress(asyncio.BrokenBarrierError):
                numbers.append(barrier.wait_sync(seconds))

        threads.plain(wait, turn % 10 / 10000)
        threads.plain(wait, 0.0005)
        threads.join()
        assert sorted(numbers) in ([], [0, 1])
