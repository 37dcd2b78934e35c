"""Mechanisms of primitives and scheduler that no room of theirs shows by itself: holders and grantees that stop, long
chains, exact counts, nothing made on the way."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

import uringloop
from uringloop._core.lifetime.counters import DEBUG_BUILD, counters
from uringloop.scheduler import Scheduler


def turns(loop: Any, count: int = 4) -> None:
    """So many turns of the loop, none of which sleeps."""
    for _ in range(count):
        loop.call_soon(loop.stop)
        loop.run_forever()


def test_hundred_waiters_of_four_loops_are_served_in_order(new_loop: Callable[[], Any]) -> None:
    lock, order = uringloop.Lock(), []
    assert lock.acquire_nowait()
    loops = [new_loop() for _ in range(4)]

    async def use(number: int) -> None:
        async with lock:
            order.append(number)

    tasks = []
    for number in range(100):
        loop = loops[number * 7 % 4]
        tasks.append(loop.create_task(use(number)))
        turns(loop, 2)
    assert lock.waiting == 100
    lock.release()
    while not all(task.done() for task in tasks):
        assert len(order) == 100 or not lock.acquire_nowait(), "a newcomer overtook the line"
        for loop in loops:
            turns(loop, 1)
    assert order == list(range(100))


def test_a_holder_whose_loop_closes_gives_the_lock_back(new_loop: Callable[[], Any]) -> None:
    """Its task is destroyed where it stands, within the `async with`."""
    lock = uringloop.Lock()
    theirs, ours = new_loop(), new_loop()

    async def hold() -> None:
        async with lock:
            await asyncio.sleep(3600)

    task = theirs.create_task(hold())
    turns(theirs)
    assert lock.locked()
    waiting = ours.create_task(lock.acquire())
    turns(ours)
    task._log_destroy_pending = False
    del task
    theirs.close()
    gc.collect()
    assert ours.run_until_complete(asyncio.wait_for(waiting, 30))
    lock.release()


def test_a_grant_to_a_blocked_loop_waits_and_can_be_passed_on(
    new_loop: Callable[[], Any],
) -> None:
    lock = uringloop.Lock()
    assert lock.acquire_nowait()
    blocked, other = new_loop(), new_loop()
    granted = blocked.create_task(lock.acquire())
    turns(blocked)
    lock.release()  # to the loop that does not run now

    async def in_vain() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(lock.acquire(), 0.01)

    other.run_until_complete(in_vain())
    assert lock.waiting == 0
    waiting = other.create_task(lock.acquire())
    turns(other)
    blocked.call_soon(granted.cancel)  # as a timeout would
    (result,) = blocked.run_until_complete(asyncio.gather(granted, return_exceptions=True))
    if result is True:
        lock.release()  # it was faster
    assert other.run_until_complete(asyncio.wait_for(waiting, 30))
    lock.release()
    assert not lock.locked()


def test_jobs_that_never_started_are_closed_without_a_warning(engine: str) -> None:
    begun = []

    async def note() -> None:
        begun.append(1)

    async def block() -> None:
        blocking.set()
        assert free.wait(30)

    blocking, free = threading.Event(), threading.Event()
    scheduler = Scheduler(1)
    scheduler.start()
    scheduler.submit(block())
    assert blocking.wait(30)
    coroutines = [note() for _ in range(10)]
    jobs = scheduler.submit_many(coroutines)
    stopping = threading.Thread(target=scheduler.stop, args=(0, 30))
    stopping.start()
    while scheduler.statistics()["state"] == "running":
        stopping.join(0.001)
    free.set()
    stopping.join()
    assert all(job.done() for job in jobs)
    assert len(begun) == sum(not job.cancelled() for job in jobs)
    assert {inspect.getcoroutinestate(coroutine) for coroutine in coroutines} == {inspect.CORO_CLOSED}


def test_long_chains_of_tasks_and_of_jobs_do_not_grow_the_stack(loop: Any) -> None:
    async def link(before: Any) -> int:
        return 1 + (await before if before is not None else 0)

    async def chain() -> int:
        task = None
        for _ in range(10_000):
            task = asyncio.ensure_future(link(task))
        assert task is not None
        return await task

    assert loop.run_until_complete(chain()) == 10_000

    async def down(depth: int) -> int:
        return 1 + await scheduler.submit(down, depth - 1) if depth else 0

    with Scheduler(3) as scheduler:
        assert scheduler.submit(down, 2_000).result(60) == 2_000


def test_ten_thousand_hand_offs_do_not_recurse(threads: Any) -> None:
    """Two loops hand the lock to each other: each release wakes through the other's inbox."""
    lock, count = uringloop.Lock(), 0

    async def use() -> None:
        nonlocal count
        for _ in range(5_000):
            async with lock:
                count += 1

    threads(use, use)
    assert count == 10_000


@pytest.fixture
def threads(engine: str) -> Callable[..., None]:
    """Runs coroutine functions, each on a loop in a thread of its own."""

    def run(*mains: Callable[[], Any]) -> None:
        errors: list[BaseException] = []

        def body(main: Callable[[], Any]) -> None:
            try:
                uringloop.run(main())
            except BaseException as error:
                errors.append(error)

        started = [threading.Thread(target=body, args=(main,)) for main in mains]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
        if errors:
            raise errors[0]

    return run


@pytest.mark.parametrize("kind", ["event", "lock", "queue", "socket", "thread"])
def test_join_waits_for_jobs_that_are_suspended(engine: str, kind: str) -> None:
    """A loop with nothing to run is not idle while a job is suspended on it."""
    event, lock, queue = uringloop.Event(), uringloop.Lock(), uringloop.Queue[int]()
    assert lock.acquire_nowait()
    left, right = socket.socketpair()
    left.setblocking(False)
    released = threading.Event()
    waits: dict[str, Callable[[], Any]] = {
        "event": event.wait,
        "lock": lock.acquire,
        "queue": queue.get,
        "socket": lambda: asyncio.get_running_loop().sock_recv(left, 1),
        "thread": lambda: asyncio.to_thread(released.wait),
    }
    release: dict[str, Callable[[], object]] = {
        "event": event.set,
        "lock": lock.release,
        "queue": lambda: queue.put_nowait(1),
        "socket": lambda: right.send(b"x"),
        "thread": released.set,
    }

    async def wait() -> None:
        await waits[kind]()

    with left, right, Scheduler(2) as scheduler:
        job = scheduler.submit(wait)
        assert not scheduler.join(0.02)
        assert not job.done()
        release[kind]()
        assert scheduler.join(30)
        assert job.done() and job.result() is None


def test_statistics_are_exact_when_many_threads_submit(engine: str) -> None:
    async def nothing() -> None:
        pass

    async def fail() -> None:
        raise ZeroDivisionError

    with Scheduler(3) as scheduler:

        def submit() -> None:
            jobs = [scheduler.submit(fail if number % 10 == 0 else nothing) for number in range(200)]
            assert sum(job.exception(30) is not None for job in jobs) == 20

        submitting = [threading.Thread(target=submit) for _ in range(8)]
        for thread in submitting:
            thread.start()
        for thread in submitting:
            thread.join()
        assert scheduler.join(30)
        found = scheduler.statistics()
    assert (found["submitted"], found["done"], found["failed"]) == (1600, 1440, 160)
    assert found["queued"] == found["running"] == found["pending"] == 0


@pytest.mark.skipif(not DEBUG_BUILD, reason="only a debug build counts what is made")
@pytest.mark.engines("uring", "epoll")
@pytest.mark.parametrize("kind", ["lock", "semaphore", "event", "queue", "recv", "send"])
def test_an_await_that_does_not_wait_creates_almost_no_objects(loop: Any, kind: str) -> None:
    """No handle, no timer, no buffer; with a socket one operation, which is the coroutine too."""
    lock, semaphore, event = uringloop.Lock(), uringloop.Semaphore(1), uringloop.Event()
    queue = uringloop.Queue[int]()
    event.set()
    left, right = socket.socketpair()
    left.setblocking(False)
    right.setblocking(False)

    async def once() -> None:
        if kind == "lock":
            async with lock:
                pass
        elif kind == "semaphore":
            async with semaphore:
                pass
        elif kind == "event":
            await event.wait()
        elif kind == "queue":
            await queue.put(1)
            await queue.get()
        elif kind == "recv":
            right.send(b"x")
            await loop.sock_recv(left, 1)
        else:
            await loop.sock_sendall(left, b"x")
            right.recv(1)

    async def main() -> dict[str, int]:
        await once()
        before = counters()
        for _ in range(100):
            await once()
        return {name: made - before[name][0] for name, (made, _) in counters().items()}

    with left, right:
        made = loop.run_until_complete(main())
    assert made.pop("op") == (100 if kind in ("recv", "send") else 0)
    assert set(made.values()) == {0}


@pytest.mark.engines("uring")
def test_operations_of_one_turn_reach_the_kernel_together(loop: Any) -> None:
    """Fifty tasks wait for fifty sockets: one system call for all, not one each."""
    pairs = [socket.socketpair() for _ in range(50)]

    async def main() -> int:
        await asyncio.sleep(0.001)
        for left, _ in pairs:
            left.setblocking(False)
        before = loop.statistics()
        tasks = [asyncio.ensure_future(loop.sock_recv(left, 1)) for left, _ in pairs]
        await asyncio.sleep(0.001)
        after = loop.statistics()
        for _, right in pairs:
            right.send(b"x")
        assert await asyncio.gather(*tasks) == [b"x"] * 50
        assert after.submitted - before.submitted >= 50
        return int(after.system_calls - before.system_calls)

    made = loop.run_until_complete(main())
    for pair in pairs:
        for sock in pair:
            sock.close()
    # in a queue of four, as a debug build and URINGLOOP_TINY=1 have it, as many as it takes to empty it
    tiny = os.environ.get("URINGLOOP_TINY", "1" if DEBUG_BUILD else "0") not in ("", "0")
    assert made <= (50 if tiny else 3)
