"""Event stays set, AutoResetEvent wakes one: on any loops and threads."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import pytest

import uringloop
from uringloop.sync.event import AutoResetEvent, Event


def test_wait_after_set_does_not_suspend(engine: str) -> None:
    event = Event()
    event.set()

    async def main() -> bool:
        return await event.wait()

    with pytest.raises(StopIteration) as ended:
        main().send(None)
    assert ended.value.value is True


def test_set_wakes_all_and_clear_stops_the_next(loop: Any) -> None:
    event = Event()

    async def main() -> None:
        tasks = [asyncio.create_task(event.wait()) for _ in range(10)]
        await asyncio.sleep(0)
        assert event.waiting == 10
        event.set()
        event.clear()
        assert await asyncio.gather(*tasks) == [True] * 10
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(event.wait(), 0.001)
        assert event.waiting == 0

    loop.run_until_complete(main())
    assert repr(event) == "<Event unset waiting=0>"


@pytest.mark.engines("uring", "epoll")
def test_set_wakes_each_loop_once(threads: Any) -> None:
    event, wakes = Event(), []

    async def wait() -> None:
        loop: Any = asyncio.get_running_loop()
        tasks = [asyncio.create_task(event.wait()) for _ in range(50)]
        before = loop._counts()["wakes"]
        await asyncio.gather(*tasks)
        wakes.append(loop._counts()["wakes"] - before)

    for _ in range(3):
        threads.loop(wait)
    while event.waiting < 150:
        pass
    event.set()
    threads.join()
    assert max(wakes) <= 1


def test_set_from_threads_and_loops_and_signal_handlers(threads: Any, factories: Any, engine: str) -> None:
    event = Event()

    async def wait() -> None:
        assert await event.wait()

    for factory in factories:
        threads.loop(wait, factory=factory)
    threads.plain(lambda: event.wait_sync(10) or 1 / 0)
    while event.waiting < 5:
        pass
    previous = signal.signal(signal.SIGUSR1, lambda *_: event.set())
    try:
        signal.raise_signal(signal.SIGUSR1)
        threads.join()
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert event.wait_sync(0)


def test_wait_sync_in_a_loop_raises_where_it_would_block(loop: Any) -> None:
    event = Event()

    async def main() -> None:
        with pytest.raises(RuntimeError, match=r"await event\.wait"):
            event.wait_sync()
        event.set()
        assert event.wait_sync()

    loop.run_until_complete(main())
    event.clear()
    assert not event.wait_sync(0.001)


def test_cancelled_waiter_hands_on_nothing_that_all_were_granted(loop: Any) -> None:
    event = Event()

    async def main() -> None:
        first = asyncio.create_task(event.wait())
        await asyncio.sleep(0)
        event.set()
        event.clear()
        second = event.wait().__await__()  # in the line before the first resumes
        first.cancel()
        await asyncio.wait([first])
        assert not event.is_set()
        assert event.statistics()["waiting"] == 1
        second.close()

    loop.run_until_complete(main())


def test_auto_reset_wakes_one_for_each_set(loop: Any) -> None:
    event, woken = AutoResetEvent(), []

    async def wait(number: int) -> None:
        await event.wait()
        woken.append(number)

    async def main() -> None:
        tasks = [asyncio.create_task(wait(number)) for number in range(4)]
        await asyncio.sleep(0)
        event.set()
        event.set()
        for _ in range(3):
            await asyncio.sleep(0)
        assert woken == [0, 1]
        assert not event.is_set()
        event.set()
        event.set()
        await asyncio.gather(*tasks)
        event.set()
        event.set()  # nobody waits: once
        await event.wait()
        assert not event.is_set()

    loop.run_until_complete(main())


def test_auto_reset_cancelled_waiter_does_not_consume_the_set(loop: Any) -> None:
    event = AutoResetEvent()

    async def main() -> None:
        first, second = asyncio.create_task(event.wait()), asyncio.create_task(event.wait())
        await asyncio.sleep(0)
        event.set()
        first.cancel()
        assert await asyncio.wait_for(second, 5)
        third = asyncio.create_task(event.wait())
        await asyncio.sleep(0)
        event.set()
        third.cancel()
        await asyncio.wait([third])
        assert event.is_set()

    loop.run_until_complete(main())


def test_auto_reset_counts_across_threads(threads: Any, engine: str) -> None:
    there, back, rounds = AutoResetEvent(), AutoResetEvent(), 300

    async def ping() -> None:
        for _ in range(rounds):
            there.set()
            await back.wait()

    def pong() -> None:
        for _ in range(rounds):
            assert there.wait_sync(10)
            back.set()

    threads.loop(ping, factory=uringloop.new_event_loop)
    threads.plain(pong)
    threads.join()
    assert not there.is_set()
    assert not back.is_set()
