from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

from uringloop._core.loop.monitor import OPERATIONS, SAMPLES, TIMES
from uringloop.inspect.observers import Observer, loops


def turn(loop: Any) -> None:
    loop.call_soon(loop.stop)
    loop.run_forever()


def counted(loop: Any) -> int:
    """How many callbacks the watch was told of in one turn."""
    before = len(loop.monitor.take_samples())
    assert before >= 0
    turn(loop)
    return len(loop.monitor.take_samples())


def test_loops_are_numbered_in_the_order_they_were_made_in(new_loop: Callable[..., Any]) -> None:
    first, second = new_loop(), new_loop()
    assert loops()[-2:] == [first, second]
    assert first._number < second._number
    first.close()
    assert first not in loops()


def test_a_dropped_loop_is_forgotten(new_loop: Callable[..., Any]) -> None:
    import uringloop

    loop = uringloop.new_event_loop()
    number = loop._number
    loop.close()
    del loop
    gc.collect()
    assert number not in [each._number for each in loops()]


def test_a_flag_stays_set_until_its_last_observer_ends(loop: Any) -> None:
    with Observer(SAMPLES, loop):
        with Observer(TIMES | SAMPLES, loop):
            assert counted(loop) == 1
        assert counted(loop) == 1
    assert counted(loop) == 0


def test_ending_twice_is_ending_once(loop: Any) -> None:
    first, second = Observer(SAMPLES, loop), Observer(SAMPLES, loop)
    first.end()
    first.end()
    assert counted(loop) == 1
    second.end()


def test_an_observer_of_one_loop_costs_other_loops_nothing(new_loop: Callable[..., Any]) -> None:
    one, other = new_loop(), new_loop()
    with Observer(SAMPLES, one):
        assert one.monitor is not None
        assert other.monitor is None


def test_an_observer_of_all_loops_sees_loops_made_later(new_loop: Callable[..., Any]) -> None:
    begun: list[int] = []
    with Observer(SAMPLES | OPERATIONS, None, lambda loop, watch: begun.append(loop._number)):
        loop = new_loop()
        assert begun[-1] == loop._number
        assert counted(loop) == 1
    assert new_loop().monitor is None


def test_an_observer_that_fails_to_begin_does_not_observe(loop: Any) -> None:
    def refuse(loop: Any, watch: Any) -> None:
        raise ValueError("not this one")

    with pytest.raises(ValueError):
        Observer(SAMPLES, loop, refuse)
    assert counted(loop) == 0


def test_observers_do_not_continue_in_a_forked_child(program: Callable[..., Any], engine: str) -> None:
    code = """
import os, uringloop
from uringloop._core.loop.monitor import SAMPLES
from uringloop.inspect import observers
loop = uringloop.new_event_loop()
look = observers.Observer(SAMPLES)
if os.fork() == 0:
    assert observers._observers == []
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert loop.monitor.take_samples() == []
    loop.close()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
assert observers._observers == [look]
loop.call_soon(loop.stop)
loop.run_forever()
assert len(loop.monitor.take_samples()) == 1
loop.close()
"""
    program(code)
