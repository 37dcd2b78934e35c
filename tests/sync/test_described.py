"""Names of primitives, and how long the first in line has waited, in reprs and statistics."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import uringloop
from uringloop._core.handoff.wait_times import record_wait_times

MAKERS: dict[str, Callable[..., Any]] = {
    "Lock": uringloop.Lock,
    "Semaphore": uringloop.Semaphore,
    "BoundedSemaphore": uringloop.BoundedSemaphore,
    "Event": uringloop.Event,
    "AutoResetEvent": uringloop.AutoResetEvent,
    "Barrier": lambda **named: uringloop.Barrier(2, **named),
    "Condition": uringloop.Condition,
    "Queue": uringloop.Queue,
    "LifoQueue": uringloop.LifoQueue,
    "PriorityQueue": uringloop.PriorityQueue,
    "Guarded": lambda **named: uringloop.Guarded(1, **named),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_repr_and_statistics_show_the_name(kind: str) -> None:
    named, plain = MAKERS[kind](name="pool"), MAKERS[kind]()
    assert repr(named).startswith(f"<{kind} 'pool' ")
    assert repr(plain).startswith(f"<{kind} ") and "None" not in repr(plain)
    shown = named.statistics()
    assert shown.get("get", shown)["name"] == "pool"
    assert "'name'" not in str(plain.statistics())


@pytest.mark.parametrize("kind", MAKERS)
def test_a_name_is_a_string_and_given_by_keyword(kind: str) -> None:
    with pytest.raises(TypeError):
        MAKERS[kind](name=b"pool")
    with pytest.raises(TypeError):
        uringloop.Lock("pool")  # type: ignore[call-arg]


def test_a_subclass_with_arguments_of_its_own_works() -> None:
    class Pool(uringloop.Lock):
        def __init__(self, size: int) -> None:
            super().__init__(name=f"pool of {size}")

    class Plain(uringloop.Event):
        def __init__(self, size: int) -> None:
            self.size = size

    assert repr(Pool(3)) == "<Pool 'pool of 3' unlocked waiting=0>"
    assert repr(Plain(3)) == "<Plain unset waiting=0>"


def test_a_line_knows_how_long_its_first_waiter_has_waited(loop: Any) -> None:
    lock = uringloop.Lock(name="pool")

    async def hold() -> None:
        async with lock:
            pass

    async def main() -> None:
        record_wait_times()
        async with lock:
            task = asyncio.create_task(hold())
            await asyncio.sleep(0.05)
            assert 0.04 < lock.statistics()["longest_wait"] < 60
            assert repr(lock).startswith("<Lock 'pool' locked waiting=1 for ")
        await task
        assert "longest_wait" not in lock.statistics()
        assert repr(lock) == "<Lock 'pool' unlocked waiting=0>"

    loop.run_until_complete(main())


SCRIPT = """
import asyncio, sys, uringloop

async def main():
    lock = uringloop.Lock()
    async with lock:
        task = asyncio.create_task(lock.acquire())
        await asyncio.sleep(0)
        print("longest_wait" in lock.statistics(), " for " in repr(lock))
    await task

asyncio.run(main(), debug="debug" in sys.argv, loop_factory=uringloop.new_event_loop) if sys.version_info >= (
    3, 12) else uringloop.run(main(), debug="debug" in sys.argv)
"""


@pytest.mark.parametrize(("argument", "recorded"), [("", False), ("debug", True)])
def test_waits_are_recorded_in_debug_mode_only(engine: str, argument: str, recorded: bool) -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT, argument], capture_output=True, text=True, timeout=60)
    assert run.stdout.split() == [str(recorded)] * 2, run.stderr
