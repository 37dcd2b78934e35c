"""Signals that arrive in the same turn: a handler runs once for each, as often as asyncio's own loop runs it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

SIGNALS = (signal.SIGUSR1, signal.SIGUSR2)


@pytest.fixture
def calls(loop: Any) -> Iterator[list[str]]:
    """What the handlers of two signals have noted; handlers are gone after the test."""
    found: list[str] = []
    for number in SIGNALS:
        loop.add_signal_handler(number, found.append, number.name)
    yield found
    for number in SIGNALS:
        loop.remove_signal_handler(number)


async def some_turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def until_called(calls: list[str], count: int) -> None:
    """Wait for so many calls, which may come turns after their signals, and for any call beyond them."""
    async with asyncio.timeout(10):
        while len(calls) < count:
            await asyncio.sleep(0)
    await some_turns()


def send(*numbers: int) -> None:
    for number in numbers:
        os.kill(os.getpid(), number)  # to this thread: delivered when it returns


@pytest.mark.contract
def test_a_handler_runs_once_for_each_of_many_signals(loop: Any, calls: list[str]) -> None:
    async def main() -> None:
        send(*[signal.SIGUSR1] * 4)
        await until_called(calls, 4)

    loop.run_until_complete(main())
    assert calls == ["SIGUSR1"] * 4


@pytest.mark.contract
def test_handlers_run_in_the_order_of_their_signals(loop: Any, calls: list[str]) -> None:
    async def main() -> None:
        send(signal.SIGUSR1, signal.SIGUSR2, signal.SIGUSR1, signal.SIGUSR1, signal.SIGUSR2)
        await until_called(calls, 5)

    loop.run_until_complete(main())
    assert calls == ["SIGUSR1", "SIGUSR2", "SIGUSR1", "SIGUSR1", "SIGUSR2"]


@pytest.mark.contract
def test_signals_that_arrive_while_the_loop_is_stopped_all_count(loop: Any, calls: list[str]) -> None:
    loop.run_until_complete(some_turns())
    send(*[signal.SIGUSR1] * 3)
    loop.run_until_complete(until_called(calls, 3))
    assert calls == ["SIGUSR1"] * 3


@pytest.mark.parametrize("debug", [False, True])
def test_a_handler_that_removes_itself_does_not_run_for_later_signals(loop: Any, debug: bool) -> None:
    """asyncio's own loop calls it all the same (docs/migration.md)."""
    calls: list[str] = []

    def handler() -> None:
        calls.append("called")
        loop.remove_signal_handler(signal.SIGUSR1)

    async def main() -> None:
        loop.add_signal_handler(signal.SIGUSR1, handler)
        send(*[signal.SIGUSR1] * 3)
        await until_called(calls, 1)

    loop.set_debug(debug)
    loop.run_until_complete(main())
    assert calls == ["called"]


@pytest.mark.contract
def test_an_exception_of_a_handler_does_not_stop_its_later_calls(loop: Any) -> None:
    calls: list[str] = []
    reports: list[str] = []

    def handler() -> None:
        calls.append("called")
        raise ValueError(len(calls))

    async def main() -> None:
        loop.add_signal_handler(signal.SIGUSR1, handler)
        loop.set_exception_handler(lambda loop, context: reports.append(repr(context["exception"])))
        send(*[signal.SIGUSR1] * 3)
        await until_called(calls, 3)
        loop.remove_signal_handler(signal.SIGUSR1)

    loop.run_until_complete(main())
    assert reports == ["ValueError(1)", "ValueError(2)", "ValueError(3)"]
