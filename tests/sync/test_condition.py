"""Condition: no notification is lost, and the lock is held again whatever happens."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from uringloop.sync.condition import Condition
from uringloop.sync.lock import Lock


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_notify_wakes_in_order(loop: Any) -> None:
    condition, woken = Condition(), []

    async def wait(number: int) -> None:
        async with condition:
            assert await condition.wait() is True
            assert condition.locked()
            woken.append(number)

    async def main() -> None:
        tasks = [asyncio.create_task(wait(number)) for number in range(5)]
        await turns()
        async with condition:
            condition.notify(2)
        await turns()
        assert woken == [0, 1]
        async with condition:
            condition.notify_all()
        await asyncio.gather(*tasks)

    loop.run_until_complete(main())
    assert woken == list(range(5))


def test_needs_the_lock(loop: Any) -> None:
    condition = Condition()

    async def main() -> None:
        with pytest.raises(RuntimeError, match="un-acquired"):
            await condition.wait()
        with pytest.raises(RuntimeError, match="un-acquired"):
            condition.notify()

    loop.run_until_complete(main())


def test_cancelled_wait_holds_the_lock_again(loop: Any) -> None:
    condition = Condition()

    async def wait() -> None:
        async with condition:
            try:
                await condition.wait()
            finally:
                assert condition.locked()

    async def main() -> None:
        task = asyncio.create_task(wait())
        await turns()
        await condition.acquire()
        task.cancel()
        await turns()
        task.cancel()  # again, while it takes the lock again
        await turns()
        assert not task.done()
        condition.release()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not condition.locked()

    loop.run_until_complete(main())


@pytest.mark.parametrize("late", [False, True])
def test_notification_of_a_cancelled_waiter_goes_on(loop: Any, late: bool) -> None:
    condition = Condition()

    async def wait() -> None:
        async with condition:
            await condition.wait()

    async def main() -> None:
        first, second = asyncio.create_task(wait()), asyncio.create_task(wait())
        await turns()
        async with condition:
            condition.notify()
            if late:
                await turns()  # it wakes, and waits for the lock
            first.cancel()
            await asyncio.sleep(0)
        await asyncio.wait_for(second, 5)
        assert first.cancelled()

    loop.run_until_complete(main())


def test_condition_works_across_loops_and_threads(threads: Any, factories: Any) -> None:
    condition, items, got = Condition(Lock()), [], []

    async def consume() -> None:
        for _ in range(20):
            async with condition:
                await condition.wait_for(lambda: items)
                got.append(items.pop())

    def consume_sync() -> None:
        for _ in range(20):
            with condition:
                assert condition.wait_for_sync(lambda: items, 20)
                got.append(items.pop())

    def produce() -> None:
        for number in range(100):
            with condition:
                items.append(number)
                condition.notify()

    for factory in factories:
        threads.loop(consume, factory=factory)
    threads.plain(consume_sync)
    threads.plain(produce)
    threads.join()
    assert sorted(got) == list(range(100))


def test_sync_wait_times_out_with_the_lock(engine: str) -> None:
    condition = Condition()
    start = time.monotonic()
    with condition:
        assert not condition.wait_sync(0.01)
        assert condition.locked()
        assert not condition.wait_for_sync(lambda: False, 0.01)
    assert time.monotonic() - start >= 0.02
    assert condition.statistics()["waiting"] == 0


def test_sync_wait_in_a_loop_raises_before_it_lets_the_lock_go(loop: Any) -> None:
    condition = Condition()

    async def main() -> None:
        async with condition:
            for wait in (
                condition.wait_sync,
                lambda timeout: condition.wait_for_sync(lambda: False, timeout),
            ):
                with pytest.raises(RuntimeError, match=r"await condition\.wait"):
                    wait(0.01)
                assert condition.locked()
        assert condition.statistics()["waits"] == 0

    loop.run_until_complete(main())


class InterruptedLock(Lock):
    """As if a signal handler raised while one waits for the lock."""

    interrupts = 1

    def acquire_sync(self, timeout: float | None = None) -> bool:
        if self.interrupts:
            self.interrupts -= 1
            raise KeyboardInterrupt
        return super().acquire_sync(timeout)


def test_interrupted_sync_wait_holds_the_lock_and_passes_its_notification_on(threads: Any) -> None:
    condition, log = Condition(InterruptedLock()), []

    def interrupted() -> None:
        with pytest.raises(KeyboardInterrupt), condition:
            try:
                condition.wait_sync()
            finally:
                log.append(condition.locked())

    def wait() -> None:
        with condition:
            log.append(condition.wait_sync(20))

    for number, work in enumerate((interrupted, wait), 1):
        threads.plain(work)
        while condition.statistics()["waiting"] < number:
            time.sleep(0.001)
    with condition:
        condition.notify()
    threads.join()
    assert log == [True, True]
    assert not condition.locked()


@pytest.mark.parametrize("notified", [False, True])
def test_waiter_destroyed_with_its_loop_does_not_release_what_another_holds(
    new_loop: Any, notified: bool
) -> None:
    condition, loop = Condition(), new_loop()

    async def wait() -> None:
        async with condition:
            await condition.wait()

    task = loop.create_task(wait())
    loop.run_until_complete(turns())
    with condition:
        condition.notify(int(notified))
        loop.run_until_complete(turns())  # if it was notified, it waits for the lock
        task._log_destroy_pending = False
        loop.close()
        task.get_coro().close()
        assert condition.locked()
        assert not condition.acquire_nowait()
    assert not condition.locked()
    with pytest.raises(RuntimeError, match="not acquired"):
        condition.release()
