"""Lock: in order, never lost, never free in between, on any loops and threads."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any

import pytest

from uringloop.sync.lock import Lock


def steps(task: asyncio.Task[Any], loop: Any, turns: int = 3) -> None:
    async def some() -> None:
        for _ in range(turns):
            await asyncio.sleep(0)

    loop.run_until_complete(some())


def test_uncontended_does_not_suspend(loop: Any) -> None:
    lock = Lock()

    async def main() -> None:
        async with lock:
            assert lock.locked()
        assert await lock.acquire() is True
        lock.release()

    coroutine = main()
    with pytest.raises(StopIteration):
        coroutine.send(None)
    assert not lock.locked()


def test_serves_tasks_in_order(loop: Any) -> None:
    lock, order = Lock(), []

    async def use(number: int) -> None:
        async with lock:
            order.append(number)
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(*[use(number) for number in range(100)])

    loop.run_until_complete(main())
    assert order == list(range(100))
    assert lock.statistics() == {
        "locked": False, "waiting": 0, "threads": 0, "waits": 99, "grants": 99, "cancels": 0, "passes": 0,
    }  # fmt: skip


def test_release_hands_the_lock_on_before_the_waiter_runs(loop: Any) -> None:
    lock = Lock()

    async def main() -> None:
        await lock.acquire()
        waiter = asyncio.create_task(lock.acquire())
        await asyncio.sleep(0)
        lock.release()
        assert lock.locked()
        assert not lock.acquire_nowait()
        newcomer = asyncio.create_task(lock.acquire())
        assert await waiter
        assert not newcomer.done()
        lock.release()
        await newcomer
        lock.release()
        assert not lock.locked()

    loop.run_until_complete(main())


def test_release_of_an_unlocked_lock_raises(loop: Any) -> None:
    with pytest.raises(RuntimeError, match="not acquired"):
        Lock().release()


def test_waiter_cancelled_in_the_line_leaves_it(loop: Any) -> None:
    lock = Lock()

    async def main() -> None:
        await lock.acquire()
        first, second = asyncio.create_task(lock.acquire()), asyncio.create_task(lock.acquire())
        await asyncio.sleep(0)
        first.cancel("reason")
        lock.release()
        assert await second
        with pytest.raises(asyncio.CancelledError, match="reason"):
            await first
        assert lock.statistics()["cancels"] == 1

    loop.run_until_complete(main())


def test_waiter_cancelled_after_the_grant_passes_it_on(loop: Any) -> None:
    lock = Lock()

    async def main() -> None:
        await lock.acquire()
        first, second = asyncio.create_task(lock.acquire()), asyncio.create_task(lock.acquire())
        await asyncio.sleep(0)
        lock.release()
        first.cancel()
        assert await asyncio.wait_for(second, 5)
        assert first.cancelled()
        assert lock.statistics()["passes"] == 1
        lock.release()
        assert not lock.locked()

    loop.run_until_complete(main())


def test_hundred_thousand_cancelled_waiters_leave_nothing(loop: Any) -> None:
    lock = Lock()

    async def main() -> None:
        await lock.acquire()
        for _ in range(1000):
            tasks = [asyncio.create_task(lock.acquire()) for _ in range(100)]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        assert lock.waiting == 0
        lock.release()

    loop.run_until_complete(main())


def test_timeout_leaves_the_line(loop: Any) -> None:
    lock = Lock()

    async def main() -> None:
        await lock.acquire()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(lock.acquire(), 0.001)
        with pytest.raises(asyncio.TimeoutError):
            async with asyncio.timeout(0.001), lock:
                raise AssertionError
        assert lock.waiting == 0
        lock.release()
        async with lock:
            pass

    loop.run_until_complete(main())


def test_body_that_raises_or_is_cancelled_releases(loop: Any) -> None:
    lock = Lock()

    async def main() -> None:
        with pytest.raises(ZeroDivisionError):
            async with lock:
                raise ZeroDivisionError

        async def hold() -> None:
            async with lock:
                await asyncio.sleep(100)

        task = asyncio.create_task(hold())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert not lock.locked()

        async def generate() -> Any:
            async with lock:
                yield

        generator = generate()
        await anext(generator)
        await generator.aclose()
        assert not lock.locked()

    loop.run_until_complete(main())


def test_nothing_is_taken_before_it_is_awaited(loop: Any) -> None:
    lock = Lock()

    async def main() -> None:
        wait = lock.acquire()
        lock.__aenter__()
        assert not lock.locked()
        task = asyncio.create_task(lock.acquire())
        task.cancel()  # before its first step
        await asyncio.wait([task])
        assert not lock.locked()
        await wait
        with pytest.raises(RuntimeError, match="reuse"):
            await wait
        lock.release()

    loop.run_until_complete(main())


def test_destroyed_waiter_gives_its_place_and_its_grant_back(loop: Any) -> None:
    lock = Lock()

    async def use() -> None:
        async with lock:
            pass

    async def main() -> None:
        await lock.acquire()
        waiting, granted = use(), use()
        granted.send(None)
        waiting.send(None)
        waiting.close()
        assert lock.waiting == 1
        lock.release()
        assert lock.locked()
        granted.close()
        assert not lock.locked()

    loop.run_until_complete(main())


def test_chain_of_releases_does_not_recurse(loop: Any) -> None:
    lock, total = Lock(), 0

    async def use() -> None:
        nonlocal total
        async with lock:
            total += 1

    async def main() -> None:
        await lock.acquire()
        tasks = [asyncio.create_task(use()) for _ in range(20_000)]
        await asyncio.sleep(0)
        lock.release()
        await asyncio.gather(*tasks)

    loop.run_until_complete(main())
    assert total == 20_000


def test_one_release_wakes_one_waiter(loop: Any) -> None:
    lock, woken = Lock(), []

    async def use(number: int) -> None:
        await lock.acquire()
        woken.append(number)

    async def main() -> None:
        await lock.acquire()
        tasks = [asyncio.create_task(use(number)) for number in range(20)]
        await asyncio.sleep(0)
        for count in range(20):
            assert len(woken) == lock.statistics()["grants"] == count
            lock.release()
            for _ in range(3):
                await asyncio.sleep(0)
        await asyncio.gather(*tasks)

    loop.run_until_complete(main())


def test_loop_stays_responsive_while_many_contend(loop: Any) -> None:
    """A turn hands the lock on once or twice, and then others have theirs, however long the line is."""
    lock, over, grants = Lock(), False, []

    async def use() -> None:
        while not over:
            async with lock:
                await asyncio.sleep(0)

    async def heartbeat() -> None:
        nonlocal over
        await asyncio.sleep(0)
        for _ in range(300):
            before = lock.statistics()["grants"]
            await asyncio.sleep(0)
            grants.append(lock.statistics()["grants"] - before)
        over = True

    async def main() -> None:
        await asyncio.gather(heartbeat(), *[use() for _ in range(1000)])

    loop.run_until_complete(main())
    assert max(grants) <= 2
    assert sum(grants) >= 100


def test_acquires_of_one_task_are_served_in_order(loop: Any) -> None:
    lock = Lock()

    async def main() -> None:
        first, second = lock.acquire(), lock.acquire()
        both = asyncio.gather(first, second)
        for _ in range(3):
            await asyncio.sleep(0)
        assert lock.locked()
        assert lock.waiting == 1
        lock.release()
        assert await both == [True, True]
        lock.release()

    loop.run_until_complete(main())


def test_with_is_for_plain_threads_only(loop: Any) -> None:
    lock = Lock()

    async def main() -> None:
        with pytest.raises(RuntimeError, match="async with"):
            with lock:
                raise AssertionError
        with pytest.raises(RuntimeError, match="async with"):
            lock.acquire_sync()
        assert not lock.locked()

    loop.run_until_complete(main())
    with lock:
        assert lock.locked()
        assert not lock.acquire_sync(0)
        assert not lock.acquire_sync(0.001)
    assert not lock.locked()
    assert lock.waiting == 0


def test_await_needs_a_running_loop(engine: str) -> None:
    lock = Lock()
    lock.acquire_nowait()
    with pytest.raises(RuntimeError, match="no running event loop"):
        lock.acquire().send(None)


def test_excludes_across_loops_and_threads(threads: Any, factories: Any) -> None:
    lock, total = Lock(), 0

    async def count() -> None:
        async def some() -> None:
            nonlocal total
            for _ in range(50):
                async with lock:
                    seen = total
                    await asyncio.sleep(0)
                    total = seen + 1

        await asyncio.gather(*[some() for _ in range(5)])

    def plain() -> None:
        nonlocal total
        for _ in range(250):
            with lock:
                seen = total
                total = seen + 1

    for factory in factories:
        threads.loop(count, factory=factory)
    threads.plain(plain)
    threads.join()
    assert total == 1250
    assert not lock.locked()


def test_serves_loops_and_threads_in_order(threads: Any, factories: Any) -> None:
    lock, order = Lock(), []
    assert lock.acquire_nowait()
    turn = threading.Semaphore(0)

    async def use(number: int) -> None:
        wait = lock.acquire()
        turn.release()
        await wait
        order.append(number)
        lock.release()

    def plain(number: int) -> None:
        turn.release()
        with lock:
            order.append(number)

    for number in range(20):
        if number % 5 == 4:
            threads.plain(plain, number)
        else:
            threads.loop(use, number, factory=factories[number % 5])
        while lock.waiting <= number:
            turn.acquire(timeout=0.001)
    lock.release()
    threads.join()
    assert order == list(range(20))


def test_woken_task_runs_on_its_own_loop(threads: Any, factories: Any) -> None:
    lock = Lock()
    seen = []

    async def use() -> None:
        loop, thread = asyncio.get_running_loop(), threading.get_ident()
        async with lock:
            assert asyncio.get_running_loop() is loop
            assert threading.get_ident() == thread
            seen.append(thread)

    lock.acquire_nowait()
    for factory in factories:
        threads.loop(use, factory=factory)
    while lock.waiting < 4:
        pass
    lock.release()
    threads.join()
    assert len(set(seen)) == 4


def test_waiter_whose_loop_is_closed_is_passed_over(new_loop: Any, factories: Any) -> None:
    lock = Lock()
    lock.acquire_nowait()
    loops = [*[factory() for factory in factories], new_loop(), new_loop()]
    tasks = [loop.create_task(lock.acquire()) for loop in loops]
    for task, loop in zip(tasks, loops, strict=True):
        steps(task, loop)
    for loop in loops[:-1]:
        loop.close()
    lock.release()
    assert loops[-1].run_until_complete(tasks[-1])
    assert lock.statistics()["passes"] == 5
    silence(tasks)


def test_granted_waiter_whose_loop_closes_unrun_passes_on(new_loop: Any, factories: Any) -> None:
    lock = Lock()
    lock.acquire_nowait()
    loops = [*[factory() for factory in factories], new_loop(), new_loop()]
    tasks = [loop.create_task(lock.acquire()) for loop in loops]
    for task, loop in zip(tasks, loops, strict=True):
        steps(task, loop)
    lock.release()  # granted to the first, handed to its loop, which never runs again
    for loop in loops[:-1]:
        loop.close()
        gc.collect()
    assert loops[-1].run_until_complete(tasks[-1])
    silence(tasks)


def silence(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task._log_destroy_pending = False  # type: ignore[attr-defined]


def test_lock_that_only_its_waiters_know_is_collected(new_loop: Any) -> None:
    loop = new_loop()
    lock = Lock()
    lock.acquire_nowait()

    async def use(lock: Lock) -> None:
        async with lock:
            pass

    task = loop.create_task(use(lock))
    steps(task, loop)
    silence([task])
    gone, gone_task = weakref.ref(lock), weakref.ref(task)
    loop.close()
    del task, lock
    gc.collect()
    assert gone() is None
    assert gone_task() is None


def test_repr_and_statistics_show_the_state(loop: Any) -> None:
    lock = Lock()
    assert repr(lock) == "<Lock unlocked waiting=0>"
    lock.acquire_nowait()
    assert repr(lock) == "<Lock locked waiting=0>"
    assert lock.statistics()["locked"] is True


def test_slow_task_woken_by_a_lock_is_named(loop: Any, caplog: pytest.LogCaptureFixture) -> None:
    loop.set_debug(True)
    loop.slow_callback_duration = 0.0
    lock = Lock()

    async def contend() -> None:
        async with lock:
            await asyncio.sleep(0)

    async def main() -> None:
        async with lock:
            task = asyncio.create_task(contend(), name="contender")
            await asyncio.sleep(0)
            caplog.clear()
        await task

    loop.run_until_complete(main())
    assert any("Executing <Task" in message and "contender" in message for message in caplog.messages)
