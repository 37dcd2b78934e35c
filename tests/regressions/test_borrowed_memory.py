"""What is freed, replaced or kept by code of the program's own while compiled code is still at work with it."""

from __future__ import annotations

import gc
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]


# Timers


def count_of_timers(loop: Any) -> int:
    count: int = loop._counts()["timers"]
    return count


def test_what_dies_with_a_timers_callback_cancels_other_timers(loop: Any) -> None:
    """So many that all cancelled ones are swept: the one that is being cancelled counts once."""
    others = [loop.call_later(1000 + number * 0.001, print) for number in range(200)]

    class Owner:
        def __call__(self) -> None: ...

        def __del__(self) -> None:
            for other in others:
                other.cancel()

    last = [loop.call_later(5000 - number, print) for number in range(3)]
    handle = loop.call_later(2000, Owner())
    loop.call_later(3000, print)
    handle.cancel()
    assert count_of_timers(loop) == 4
    for each in last:
        each.cancel()
    assert count_of_timers(loop) == 1


def test_what_dies_with_a_timers_callback_closes_the_loop(engine: str, program: Program) -> None:
    program(
        """
import gc, uringloop

box = [uringloop.new_event_loop()]
others = [box[0].call_later(1000 + number * 0.001, print) for number in range(200)]

class Owner:
    def __call__(self):
        pass

    def __del__(self):
        for other in others:
            other.cancel()
        others.clear()
        box.pop().close()
        gc.collect()

handle = box[0].call_later(2000, Owner())
box[0].call_later(3000, print)
handle.cancel()
""",
        PYTHONMALLOC="debug",
    )


@pytest.mark.contract
def test_a_timer_cancelled_by_what_dies_with_it(loop: Any) -> None:
    handles: list[Any] = []
    cancelled = []

    class Owner:
        def __call__(self) -> None: ...

        def __del__(self) -> None:
            handles[0].cancel()
            cancelled.append(handles[0].cancelled())

    handles.append(loop.call_later(1000, Owner()))
    handles[0].cancel()
    gc.collect()
    assert cancelled == [True]


# Datagrams


@pytest.mark.engines("uring")
def test_an_endpoint_is_freed_by_its_poll_while_the_loop_closes(engine: str, program: Program) -> None:
    """Its polls are armed by another thread than ends them, so that connection_lost comes before they are cancelled."""
    program(
        """
import asyncio, threading, uringloop

def once(turns):
    loop = uringloop.new_event_loop()

    async def make():
        made = [loop.create_datagram_endpoint(asyncio.DatagramProtocol, ("127.0.0.1", 0)) for _ in range(5)]
        made = [(await each)[0] for each in made]
        await asyncio.sleep(0.001)
        return made

    async def end(endpoints):
        while endpoints:
            endpoints.pop().abort()
        for _ in range(turns):
            await asyncio.sleep(0)

    endpoints = loop.run_until_complete(make())
    thread = threading.Thread(target=lambda: loop.run_until_complete(end(endpoints)))
    thread.start()
    sum(range(20000))  # this thread, which armed the polls, is at work in user space
    thread.join()
    loop.close()

for number in range(100):
    once(number % 4)
""",
        PYTHONMALLOC="debug",
        URINGLOOP_DISABLE="single_issuer",
    )
