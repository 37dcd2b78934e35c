from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from typing import Any

import pytest

from uringloop._core.loop.monitor import TIMES
from uringloop.inspect import snapshot
from uringloop.inspect.hints import hints
from uringloop.inspect.observers import Observer

LOOP: dict[str, Any] = {"number": 1, "running": None, "slowest": []}
CALM: dict[str, Any] = {"descriptors": {"open": 10, "limit": 1024}, "loops": [LOOP]}


def slow(name: str, seconds: float) -> dict[str, Any]:
    return {"name": name, "detail": None, "seconds": seconds, "ago_seconds": 1.0}


def test_of_a_process_that_is_well_there_is_nothing_to_say() -> None:
    assert hints(CALM) == []
    assert hints({**CALM, "descriptors": None}) == []
    assert hints({**CALM, "descriptors": {"open": 10**6, "limit": -1}}) == []
    assert hints({**CALM, "loops": [{**LOOP, "slowest": [slow("a", 0.099)]}]}) == []


def test_slow_callbacks_are_counted_by_name_those_that_took_most_first() -> None:
    slowest = [slow("once", 0.5), slow("handler", 0.4), slow("handler", 0.3), slow("quick", 0.01)]
    assert hints({**CALM, "loops": [{**LOOP, "slowest": slowest}]}) == [
        "loop 1 stood still 2 times in the last minute for handler(): 0.70 s together, 0.40 s at most",
        "loop 1 stood still 1 time in the last minute for once(): 0.50 s together, 0.50 s at most",
    ]


def test_a_callback_that_does_not_yield_is_told() -> None:
    running = {"name": "spin", "detail": "Task-1", "seconds": 2.34, "stack": ["a line"]}
    (said,) = hints({**CALM, "loops": [{**LOOP, "running": running}]})
    assert said == "loop 1 runs nothing but spin() for 2.3 s: it does not yield"
    assert hints({**CALM, "loops": [{**LOOP, "running": {**running, "stack": None}}]}) == []


@pytest.fixture
def few_descriptors() -> Iterator[int]:
    """A limit of which the process has used nine tenths."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = len(os.listdir("/proc/self/fd")) + 4
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    opened = []
    try:
        while len(os.listdir("/proc/self/fd")) - 1 < 0.9 * limit:
            opened.append(os.open("/dev/null", os.O_RDONLY))
        yield limit
    finally:
        for each in opened:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_process_near_its_limit_of_descriptors_is_told(loop: Any, few_descriptors: int) -> None:
    (said,) = [each for each in snapshot()["hints"] if "descriptors" in each]
    assert f" of {few_descriptors} descriptors are open" in said and "ulimit -n" in said


def test_a_snapshot_has_the_hints_of_its_loops(loop: Any) -> None:
    def block() -> None:
        time.sleep(0.15)
        loop.stop()

    with Observer(TIMES):
        loop.call_soon(block)
        loop.run_forever()
        (said,) = [each for each in snapshot()["hints"] if "block" in each]
    assert said.startswith(f"loop {loop._number} stood still 1 time in the last minute for ")
    assert snapshot()["descriptors"]["open"] > 2
