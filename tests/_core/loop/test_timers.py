"""Timers: never early, in order, and free once cancelled."""

from __future__ import annotations

import asyncio
import datetime
import gc
import math
import random
import weakref
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Loop = asyncio.AbstractEventLoop

contract = pytest.mark.contract


def run_until_idle(loop: Any, limit: int = 10_000) -> None:
    """Turn until neither callbacks nor timers are left."""
    for _ in range(limit):
        counts = loop._counts()
        if not (counts["ready"] or counts["timers"] or counts["waiting"]):
            return
        loop._run_once()
    raise AssertionError("never idle")


def test_no_timer_is_early_by_the_loops_clock(loop: Loop) -> None:
    early = []

    def check(when: float) -> None:
        if loop.time() < when:
            early.append(when - loop.time())

    rng = random.Random(1)
    handles = []
    for _ in range(500):
        when = loop.time() + rng.random() * 0.05
        handles.append(loop.call_at(when, check, when))
    loop.call_later(0.06, loop.stop)
    loop.run_forever()
    assert early == []


def test_no_sleep_is_shorter_than_asked(loop: Loop) -> None:
    async def main() -> list[float]:
        short = []
        for i in range(100):
            delay = 0.0001 * (i % 20)
            begun = loop.time()
            await asyncio.sleep(delay)
            if loop.time() - begun < delay:
                short.append(loop.time() - begun - delay)
        return short

    assert loop.run_until_complete(main()) == []


def test_the_clock_is_read_at_each_call(loop: Loop) -> None:
    times = [loop.time() for _ in range(1000)]
    assert times == sorted(times)
    assert len(set(times)) > 500


@contract
def test_equal_deadlines_run_in_the_order_of_scheduling(loop: Loop) -> None:
    seen: list[int] = []
    when = loop.time() + 0.002
    for i in range(300):
        loop.call_at(when, seen.append, i)
    loop.call_at(when, loop.stop)
    loop.run_forever()
    assert sorted(seen) == list(range(300))


def test_equal_deadlines_are_stable(loop: Loop) -> None:
    seen: list[int] = []
    when = loop.time() + 0.002
    for i in range(300):
        loop.call_at(when, seen.append, i)
    loop.call_at(when, loop.stop)
    loop.run_forever()
    assert seen == list(range(300))


def test_deadlines_a_nanosecond_apart_keep_their_order(loop: Loop) -> None:
    seen: list[int] = []
    base = math.ceil(loop.time()) + 0.0  # small enough to have nanoseconds in a double on any uptime of years
    offsets = list(range(100))
    random.Random(2).shuffle(offsets)
    for i in offsets:
        loop.call_at(base - 1 + i * 1e-6, seen.append, i)
    run_until_idle(loop)
    assert seen == list(range(100))


@contract
def test_negative_delays_run_most_overdue_first(loop: Loop) -> None:
    seen: list[int] = []
    for i in (-1, -3, -2, -5, -4):
        loop.call_later(i, seen.append, i)
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert seen == [-5, -4, -3, -2, -1]


@contract
def test_delay_zero_runs_in_the_next_turn_and_is_a_timer(loop: Loop) -> None:
    seen: list[int] = []
    handle = loop.call_later(0, seen.append, 1)
    assert isinstance(handle.when(), float)
    loop.call_soon(loop.call_soon, loop.stop)
    loop.run_forever()
    assert seen == [1]


@contract
def test_when_returns_exactly_the_given_time(loop: Loop) -> None:
    for when in (0.1, 1e9, loop.time() + 1.25, 3):
        handle = loop.call_at(when, print)
        assert handle.when() == when and type(handle.when()) is type(when)
        handle.cancel()
    before = loop.time()
    handle = loop.call_later(100, print)
    assert before + 100 <= handle.when() <= loop.time() + 100
    handle.cancel()


@contract
def test_integers_fractions_and_the_like_are_delays(loop: Loop) -> None:
    seen: list[str] = []
    loop.call_later(True, seen.append, "bool").cancel()
    loop.call_later(0, seen.append, "int")
    loop.call_later(Fraction(1, 1000), seen.append, "fraction")
    loop.call_later(0.005, loop.stop)
    loop.run_forever()
    assert seen == ["int", "fraction"]


@contract
@pytest.mark.parametrize("delay", ["1", object(), datetime.timedelta(seconds=1), []])
def test_a_delay_that_is_not_a_number_is_refused(loop: Loop, delay: Any) -> None:
    with pytest.raises(TypeError):
        loop.call_later(delay, print)


@contract
def test_none_is_refused_as_delay_and_as_time(loop: Loop) -> None:
    with pytest.raises(TypeError, match="delay must not be None"):
        loop.call_later(None, print)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="when cannot be None"):
        loop.call_at(None, print)  # type: ignore[arg-type]


def test_a_time_without_an_order_is_refused(loop: Loop) -> None:
    with pytest.raises(TypeError):
        loop.call_at("soon", print)  # type: ignore[arg-type]
    assert loop._counts()["timers"] == 0  # type: ignore[attr-defined]


@contract
@pytest.mark.parametrize("delay", [math.inf, 1e300, 1e10, 2**62, 2**70])
def test_an_absurdly_long_delay_does_not_hold_others_up(loop: Loop, delay: float) -> None:
    handle = loop.call_later(delay, print, "never")
    assert loop.run_until_complete(asyncio.sleep(0.001, "on time")) == "on time"
    loop.call_soon(loop.stop)
    loop.run_forever()
    handle.cancel()


@pytest.mark.parametrize("delay", [-math.inf, -1e300, math.nan])
def test_a_delay_of_minus_infinity_or_nan_runs_at_once(loop: Loop, delay: float) -> None:
    seen: list[str] = []
    loop.call_later(delay, seen.append, "ran")
    loop.call_later(0, loop.stop)
    loop.run_forever()
    assert seen == ["ran"]


def test_a_far_deadline_lets_the_loop_sleep(
    new_loop: Callable[..., Any], program: Callable[..., Any]
) -> None:
    loop = new_loop()
    handle = loop.call_later(math.inf, print)
    other = loop.call_later(1e12, print)
    loop.call_later(0.02, loop.stop)
    before = loop._counts()["turns"]
    loop.run_forever()
    assert loop._counts()["turns"] - before < 50  # an overflow would make it spin
    handle.cancel()
    other.cancel()


@contract
def test_a_cancelled_timer_does_not_run(loop: Loop) -> None:
    seen: list[int] = []
    handles = [loop.call_later(0.001, seen.append, i) for i in range(100)]
    for handle in handles[::2]:
        handle.cancel()
        handle.cancel()
        assert handle.cancelled()
    loop.call_later(0.005, loop.stop)
    loop.run_forever()
    assert sorted(seen) == list(range(1, 100, 2))


@contract
def test_a_timer_cancelled_by_another_of_the_same_turn_does_not_run(loop: Loop) -> None:
    seen: list[str] = []
    when = loop.time() + 0.001
    loop.call_at(when, lambda: second.cancel())
    second = loop.call_at(when + 1e-9, seen.append, "cancelled")
    loop.call_at(when + 0.002, loop.stop)
    loop.run_forever()
    assert seen == []


@contract
def test_cancelling_drops_the_callback_at_once(loop: Loop) -> None:
    class Held:
        def __call__(self) -> None: ...

    held = Held()
    gone = weakref.ref(held)
    handles = [loop.call_later(3600, held, held), loop.call_later(3601, held)]
    del held
    for handle in handles:
        handle.cancel()
    gc.collect()
    assert gone() is None


def test_cancelled_timers_are_swept(loop: Any) -> None:
    keep = [loop.call_later(3600 + i, print) for i in range(100)]
    for _ in range(200):
        handles = [loop.call_later(7200 + i, print) for i in range(100)]
        for handle in handles:
            handle.cancel()
    assert loop._counts()["timers"] == 100
    for handle in keep:
        handle.cancel()
    assert loop._counts()["timers"] == 0


def test_a_cancel_while_the_callback_of_another_loop_runs_is_harmless(new_loop: Callable[..., Any]) -> None:
    first, second = new_loop(), new_loop()
    handle = first.call_later(3600, print)
    second.call_soon(handle.cancel)
    second.call_soon(second.stop)
    second.run_forever()
    assert handle.cancelled()


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=st.lists(st.tuples(st.integers(0, 50), st.booleans(), st.integers(0, 30)), max_size=60))
def test_any_mix_of_adding_and_cancelling_runs_the_rest_in_order(
    loop: Any, plan: list[tuple[int, bool, int]]
) -> None:
    seen: list[tuple[int, int]] = []
    base = loop.time() - 1
    handles: list[Any] = []
    expected = []
    for number, (offset, cancel, victim) in enumerate(plan):
        entry = (offset, number)
        handles.append(loop.call_at(base + offset * 1e-3, seen.append, entry))
        expected.append(entry)
        if cancel and victim < len(handles):
            handles[victim].cancel()
            expected[victim] = (-1, -1)
    run_until_idle(loop)
    assert seen == sorted(entry for entry in expected if entry[0] >= 0)


def test_a_thousand_random_timers_with_cancels_run_in_order(loop: Any) -> None:
    rng = random.Random(3)
    seen: list[float] = []
    base = loop.time() - 100
    expected = []
    for _ in range(5000):
        when = base + rng.randrange(1000) / 16
        handle = loop.call_at(when, seen.append, when)
        if rng.random() < 0.7:
            handle.cancel()
        else:
            expected.append(when)
    run_until_idle(loop)
    assert seen == sorted(expected)
