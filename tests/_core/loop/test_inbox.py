"""call_soon_threadsafe: what did not raise runs, and a loop is woken once a sleep."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

contract = pytest.mark.contract


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads change places as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@contract
def test_a_callback_from_another_thread_runs_in_the_loops_thread(loop: Any) -> None:
    seen: list[int] = []

    def other() -> None:
        loop.call_soon_threadsafe(lambda: (seen.append(threading.get_ident()), loop.stop()))

    thread = threading.Thread(target=other)
    loop.call_soon(thread.start)
    loop.run_forever()
    thread.join()
    assert seen == [threading.get_ident()]


@contract
def test_callbacks_of_one_thread_keep_their_order(loop: Any, switching: None) -> None:
    seen: list[int] = []

    def other() -> None:
        for i in range(5000):
            loop.call_soon_threadsafe(seen.append, i)
        loop.call_soon_threadsafe(loop.stop)

    thread = threading.Thread(target=other)
    thread.start()
    loop.run_forever()
    thread.join()
    assert seen == list(range(5000))


@contract
def test_callbacks_of_eight_threads_all_run(loop: Any, switching: None) -> None:
    seen: list[int] = []
    threads_left = 8

    def done() -> None:
        nonlocal threads_left
        threads_left -= 1
        if not threads_left:
            loop.stop()

    def other() -> None:
        for i in range(1000):
            loop.call_soon_threadsafe(seen.append, i)
        loop.call_soon_threadsafe(done)

    threads = [threading.Thread(target=other) for _ in range(8)]
    for thread in threads:
        thread.start()
    loop.run_forever()
    for thread in threads:
        thread.join()
    assert sorted(seen) == sorted(list(range(1000)) * 8)


@contract
def test_no_wake_is_lost_between_looking_and_sleeping(loop: Any, switching: None) -> None:
    """Ping-pong: each hand-in finds the loop falling asleep, asleep, or awake."""
    rounds = 2000
    answered = threading.Semaphore(0)

    def other() -> None:
        for _ in range(rounds):
            loop.call_soon_threadsafe(answered.release)
            answered.acquire()
        loop.call_soon_threadsafe(loop.stop)

    thread = threading.Thread(target=other)
    thread.start()
    loop.run_forever()
    thread.join()


@contract
def test_callbacks_submitted_before_the_run_are_run(loop: Any) -> None:
    seen: list[int] = []
    thread = threading.Thread(target=loop.call_soon_threadsafe, args=(seen.append, 1))
    thread.start()
    thread.join()
    loop.call_soon_threadsafe(loop.stop)
    loop.run_forever()
    assert seen == [1]


@contract
def test_a_closed_loop_refuses_in_every_thread(loop: Any) -> None:
    loop.close()
    refused: list[str] = []

    def other() -> None:
        try:
            loop.call_soon_threadsafe(print)
        except RuntimeError as error:
            refused.append(str(error))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert refused == ["Event loop is closed"]


@contract
def test_closing_while_threads_submit_never_crashes(new_loop: Callable[..., Any]) -> None:
    for _ in range(10):
        loop = new_loop()
        ready = threading.Event()

        def other(loop: Any = loop, ready: threading.Event = ready) -> None:
            try:
                for _ in range(10_000):
                    loop.call_soon_threadsafe(id, 1)
                    ready.set()
            except RuntimeError:
                pass

        threads = [threading.Thread(target=other) for _ in range(3)]
        for thread in threads:
            thread.start()
        ready.wait(30)
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        for thread in threads:
            thread.join()


@pytest.mark.engines("uring", "epoll")
def test_a_thousand_calls_to_an_awake_loop_cost_no_wake(loop: Any) -> None:
    count = 0

    def callback() -> None:
        nonlocal count
        count += 1

    def other() -> None:
        for _ in range(1000):
            loop.call_soon_threadsafe(callback)

    def busy() -> None:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()  # the loop is in a callback all the while: awake

    before = loop._counts()["wakes"]
    loop.call_soon(busy)
    loop.call_soon(loop.call_soon, loop.stop)
    loop.run_forever()
    assert count == 1000
    assert loop._counts()["wakes"] == before


@pytest.mark.engines("uring", "epoll")
def test_a_thousand_calls_to_a_sleeping_loop_wake_it_once_per_sleep(loop: Any) -> None:
    count = 0

    def callback() -> None:
        nonlocal count
        count += 1
        if count == 1000:
            loop.stop()

    def other() -> None:
        for _ in range(1000):
            loop.call_soon_threadsafe(callback)

    before = loop._counts()
    thread = threading.Thread(target=other)
    thread.start()
    loop.run_forever()
    thread.join()
    after = loop._counts()
    assert after["wakes"] - before["wakes"] <= after["sleeps"] - before["sleeps"]


@contract
def test_run_coroutine_threadsafe_gives_the_result_to_the_other_thread(loop: Any) -> None:
    answers: list[int] = []

    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    def other() -> None:
        answers.extend(asyncio.run_coroutine_threadsafe(answer(), loop).result(30) for _ in range(50))
        loop.call_soon_threadsafe(loop.stop)

    thread = threading.Thread(target=other)
    thread.start()
    loop.run_forever()
    thread.join()
    assert answers == [42] * 50
