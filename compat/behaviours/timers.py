"""call_later, call_at and the loop's clock."""

from __future__ import annotations

import asyncio
import time

from compat.behaviours import check
from compat.behaviours.helpers import raises

TIMERS = "call_later, call_at, TimerHandle.when(), cancel"
CLOCK = "timers never fire early; loop.time() is a clock"


@check(TIMERS)
async def call_later_returns_a_timer_handle() -> None:
    loop = asyncio.get_running_loop()
    for delay in (0, 0.01, 5):
        before = loop.time()
        handle = loop.call_later(delay, int)
        assert isinstance(handle, asyncio.TimerHandle), type(handle)
        assert before + delay <= handle.when() <= loop.time() + delay
        handle.cancel()
        assert handle.cancelled()
    when = loop.time() + 3.123456789
    handle = loop.call_at(when, int)
    assert handle.when() == when
    handle.cancel()


@check(TIMERS)
async def timers_run_in_the_order_of_their_deadlines() -> None:
    loop = asyncio.get_running_loop()
    seen: list[str] = []
    loop.call_later(0.03, seen.append, "third")
    loop.call_later(0.02, seen.append, "second")
    loop.call_later(0.01, seen.append, "first")
    now = loop.time()
    loop.call_at(now - 1, seen.append, "one second late")
    loop.call_at(now - 2, seen.append, "two seconds late")
    await asyncio.sleep(0.1)
    assert seen == ["two seconds late", "one second late", "first", "second", "third"], seen


@check(TIMERS)
async def cancelled_timer_never_runs() -> None:
    loop = asyncio.get_running_loop()
    seen: list[int] = []
    handles = [loop.call_later(0.01 + index / 10000, seen.append, index) for index in range(300)]
    for handle in handles[::2]:
        handle.cancel()
    # a timer cancelled by another one that is due in the same turn
    victim = loop.call_later(0.06, seen.append, -1)
    loop.call_at(victim.when() - 0.0001, victim.cancel)
    await asyncio.sleep(0.15)
    assert seen == list(range(1, 300, 2))


@check(TIMERS)
async def huge_and_infinite_delays_are_accepted() -> None:
    loop = asyncio.get_running_loop()
    for delay in (10**9, float(2**55), float("inf")):
        handle = loop.call_later(delay, int)
        await asyncio.sleep(0.001)
        handle.cancel()
    raises(TypeError, loop.call_at, None, int)


@check(CLOCK)
async def sleep_is_never_shorter_than_asked() -> None:
    loop = asyncio.get_running_loop()
    for delay in (0.0002, 0.0005, 0.001, 0.003):
        for _ in range(30):
            started, clock = time.perf_counter(), loop.time()
            await asyncio.sleep(delay)
            # half a microsecond for the rounding of floats far from zero
            assert time.perf_counter() - started >= delay - 5e-7, f"early: asked for {delay}"
            assert loop.time() - clock >= delay - 5e-7, f"early by the loop's clock: asked for {delay}"


@check(CLOCK)
async def loop_time_moves_within_a_turn() -> None:
    loop = asyncio.get_running_loop()
    times = [loop.time() for _ in range(2000)]
    assert times == sorted(times)
    assert len(set(times)) > 100, len(set(times))
    before, now, after = time.monotonic(), loop.time(), time.monotonic()
    assert before - 0.5 < now < after + 0.5


@check(CLOCK)
async def idle_loop_does_not_spin() -> None:
    before = time.process_time()
    await asyncio.sleep(1)
    assert time.process_time() - before < 0.1
