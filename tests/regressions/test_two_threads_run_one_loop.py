"""Of two threads that run one loop at once, or run and close it, one gets a RuntimeError; the other notices nothing."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

NewLoop = Callable[..., Any]
ROUNDS = 200


@pytest.fixture
def short_slices() -> Iterator[None]:
    """Threads take turns after every few instructions."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def at_once(*functions: Callable[[], object]) -> list[Any]:
    """What each returned or raised."""
    barrier = threading.Barrier(len(functions))
    outcomes: list[Any] = [None] * len(functions)

    def call(number: int) -> None:
        barrier.wait()
        try:
            outcomes[number] = functions[number]()
        except BaseException as error:
            outcomes[number] = error

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def one_is_refused(outcomes: list[Any]) -> bool:
    raised = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert all(isinstance(error, RuntimeError) for error in raised), raised
    return len(raised) == 1


def test_one_of_two_threads_in_run_forever_is_refused(loop: Any, short_slices: None) -> None:
    ran: list[int] = []

    def run() -> None:
        try:
            loop.run_forever()
        except RuntimeError:
            # The loop runs until the other thread was refused: a stop that is lost hangs this test.
            loop.call_soon_threadsafe(loop.stop)
            raise
        ran.append(1)

    for count in range(1, ROUNDS):
        assert one_is_refused(at_once(run, run))
        assert len(ran) == count and not loop.is_running()


def test_one_of_two_threads_in_run_until_complete_is_refused(loop: Any, short_slices: None) -> None:
    begun: list[int] = []
    refused = asyncio.Event()

    async def main() -> str:
        begun.append(1)
        await refused.wait()
        refused.clear()
        return "ran"

    def run() -> str:
        coroutine = main()
        try:
            return str(loop.run_until_complete(coroutine))
        except RuntimeError:
            coroutine.close()
            loop.call_soon_threadsafe(refused.set)
            raise

    for count in range(1, ROUNDS):
        outcomes = at_once(run, run)
        assert one_is_refused(outcomes), outcomes
        assert "ran" in outcomes
        assert len(begun) == count


def test_a_loop_that_one_thread_runs_while_another_closes_it_is_closed_once(
    new_loop: NewLoop, short_slices: None
) -> None:
    for _ in range(ROUNDS // 4):
        loop = new_loop()
        loop.call_soon(loop.call_soon, loop.stop)
        at_once(loop.run_forever, loop.close)
        loop.close()
        assert loop.is_closed() and loop.engine.closed


def test_two_threads_that_close_a_loop_do_not_disturb_each_other(
    new_loop: NewLoop, short_slices: None
) -> None:
    for _ in range(ROUNDS // 4):
        loop = new_loop()
        loop.run_until_complete(asyncio.sleep(0))
        outcomes = at_once(loop.close, loop.close)
        assert None in outcomes
        assert all(outcome is None or isinstance(outcome, RuntimeError) for outcome in outcomes), outcomes
        assert loop.is_closed() and loop.engine.closed
