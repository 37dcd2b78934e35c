"""Handles and timers in ways that few programs use: run by hand, at times that are no numbers, with wrong arguments."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import math
import weakref
from collections.abc import Callable
from typing import Any

import pytest


def turns(loop: Any, count: int) -> None:
    async def main() -> None:
        for _ in range(count):
            await asyncio.sleep(0)

    loop.run_until_complete(main())


@pytest.mark.contract
@pytest.mark.parametrize("nan", [math.nan, -math.nan])
def test_a_timer_at_nan_runs_after_the_timers_that_are_due(loop: Any, nan: float) -> None:
    ran: list[str] = []

    async def main() -> None:
        loop.call_at(0, ran.append, "at 0")
        loop.call_later(-1, ran.append, "a second ago")
        loop.call_later(0, ran.append, "now")
        timer = loop.call_later(nan, ran.append, "never?")
        assert math.isnan(timer.when())
        loop.call_at(nan, ran.append, "never either?")
        for _ in range(10):
            await asyncio.sleep(0)

    loop.run_until_complete(main())
    assert ran[0] == "at 0"
    assert sorted(ran[:3]) == ["a second ago", "at 0", "now"]
    assert sorted(ran[3:]) == ["never either?", "never?"]


def test_a_timer_at_nan_runs_even_if_no_other_event_wakes_the_loop(loop: Any) -> None:
    """asyncio cannot sleep until then, since Python 3.13."""
    loop.call_later(math.nan, loop.stop)
    loop.run_forever()


@pytest.mark.contract
@pytest.mark.parametrize("schedule", ["call_soon", "call_later", "call_soon_threadsafe"])
def test_the_loop_runs_a_handle_whose_run_by_hand_failed(loop: Any, schedule: str) -> None:
    ran: list[int] = []
    loop.set_exception_handler(lambda loop, context: None)  # since Python 3.13 it cannot be called either
    context = contextvars.copy_context()

    async def main() -> None:
        delay = (0,) if schedule == "call_later" else ()
        handle = getattr(loop, schedule)(*delay, ran.append, 1, context=context)
        context.run(handle._run)  # its context is entered already
        for _ in range(10):
            await asyncio.sleep(0)

    loop.run_until_complete(main())
    assert ran == [1]


@pytest.mark.contract
def test_the_loop_also_runs_a_handle_that_was_run_by_hand(loop: Any) -> None:
    ran: list[int] = []
    handle = loop.call_soon(ran.append, 1)

    async def main() -> None:
        await asyncio.sleep(0)

    asyncio.events._set_running_loop(loop)
    try:
        handle._run()
        handle._run()
    finally:
        asyncio.events._set_running_loop(None)
    assert ran == [1, 1]
    turns(loop, 1)
    assert ran == [1, 1, 1]


@pytest.mark.contract
def test_the_loop_runs_a_handle_that_was_interrupted_while_run_by_hand(loop: Any) -> None:
    ran: list[int] = []

    def callback() -> None:
        ran.append(len(ran))
        if len(ran) == 1:
            raise KeyboardInterrupt

    handle = loop.call_soon(callback)
    with pytest.raises(KeyboardInterrupt):
        handle._run()
    turns(loop, 1)
    assert ran == [0, 1]


@pytest.mark.contract
@pytest.mark.parametrize("when", ["before", "within", "after"])
def test_a_handle_run_by_hand_and_cancelled_drops_its_callback(loop: Any, when: str) -> None:
    class Callback:
        def __call__(self) -> None:
            if when == "within":
                handle.cancel()

    callback = Callback()
    alive = weakref.ref(callback)
    handle = loop.call_soon(callback)
    del callback
    if when == "before":
        handle.cancel()
    handle._run()
    if when == "after":
        handle.cancel()
    gc.collect()
    assert alive() is None
    turns(loop, 1)


WRONG: dict[str, Callable[[Any], Any]] = {
    "call_soon()": lambda loop: loop.call_soon(),
    "call_soon(foo=)": lambda loop: loop.call_soon(print, foo=1),
    "call_soon(callback=)": lambda loop: loop.call_soon(print, callback=print),
    "call_soon_threadsafe()": lambda loop: loop.call_soon_threadsafe(),
    "call_later()": lambda loop: loop.call_later(),
    "call_later(1)": lambda loop: loop.call_later(1),
    "call_at(1)": lambda loop: loop.call_at(1),
    "call_at(when=)": lambda loop: loop.call_at(print, when=1),
}


@pytest.mark.parametrize("call", WRONG)
def test_wrong_arguments_raise_the_messages_of_asyncio(loop: Any, call: str) -> None:
    stock = asyncio.SelectorEventLoop()
    told = []
    for each in (stock, loop):
        with pytest.raises(TypeError) as raised:
            WRONG[call](each)
        told.append(str(raised.value))
    stock.close()
    assert told[0] == told[1]
