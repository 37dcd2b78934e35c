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
