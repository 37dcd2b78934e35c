from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from uringloop.inspect import SlowCallback, Watchdog, watchdog

NEVER = 3600.0  # seconds: what looks is the test


def from_outside(function: Callable[[], object]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_a_callback_is_reported_while_it_runs(loop: Any) -> None:
    reports: list[SlowCallback] = []
    reported = threading.Event()

    def report(slow: SlowCallback) -> None:
        reports.append(slow)
        reported.set()

    def dawdle() -> None:
        reported.wait()  # it ends because it was reported
        loop.stop()

    with watchdog(loop, 0.001, report):
        loop.call_soon(dawdle)
        loop.run_forever()
    slow = reports[0]
    assert slow.loop is loop
    assert "dawdle" in slow.name and slow.detail is None
    assert slow.seconds >= 0.001
    assert "in dawdle" in "".join(slow.stack)
    assert "has been running for" in str(slow) and "in dawdle" in str(slow)


def test_a_task_is_named(loop: Any) -> None:
    reports: list[SlowCallback] = []

    async def dawdle(dog: Watchdog) -> None:
        dog.seconds = 0.000_001
        from_outside(dog.look)

    async def main() -> None:
        with watchdog(loop, NEVER, reports.append) as dog:
            await asyncio.sleep(0)
            await dawdle(dog)

    loop.run_until_complete(loop.create_task(main(), name="the task"))
    assert ("main" in reports[0].name, reports[0].detail) == (True, "the task")
    assert "in dawdle" in "".join(reports[0].stack)
    assert "the task" in str(reports[0])


def test_each_slow_callback_is_reported_once(loop: Any) -> None:
    reports: list[SlowCallback] = []
    dog = watchdog(loop, NEVER, reports.append)
    dog.seconds = 0.000_001

    def dawdle() -> None:
        started = time.monotonic()
        while time.monotonic() - started < 0.001:
            pass
        for _ in range(3):
            from_outside(dog.look)

    for _ in range(2):
        loop.call_soon(dawdle)
    loop.call_soon(loop.stop)
    loop.run_forever()
    dog.stop()
    assert ["dawdle" in slow.name for slow in reports] == [True, True]


def test_quick_callbacks_and_sleeps_are_not_reported(loop: Any) -> None:
    reports: list[SlowCallback] = []
    with watchdog(loop, NEVER, reports.append) as dog:
        loop.call_soon(from_outside, dog.look)
        loop.call_soon(loop.stop)
        loop.run_forever()
        dog.seconds = 0.000_001
        dog.look()
    assert reports == []


def test_all_loops_are_watched_if_none_is_named(new_loop: Callable[..., Any]) -> None:
    reports: list[SlowCallback] = []
    with watchdog(seconds=NEVER, report=reports.append) as dog:
        loop = new_loop()
        dog.seconds = 0.000_001

        def dawdle() -> None:
            from_outside(dog.look)
            loop.stop()

        loop.call_soon(dawdle)
        loop.run_forever()
    assert [slow.loop for slow in reports] == [loop]


def test_reports_go_to_the_logger_and_may_raise(loop: Any, caplog: pytest.LogCaptureFixture) -> None:
    def fail(slow: SlowCallback) -> None:
        raise ValueError("of the report's own")

    def dawdle(dog: Any) -> None:
        from_outside(dog.look)

    with caplog.at_level(logging.WARNING):
        with watchdog(loop, NEVER) as first, watchdog(loop, NEVER, fail) as second:
            for dog in (first, second):
                dog.seconds = 0.000_001
                loop.call_soon(dawdle, dog)
            loop.call_soon(loop.stop)
            loop.run_forever()
    told, failed = caplog.records
    assert told.name == "uringloop" and "dawdle" in told.getMessage() and "dog.look" in told.getMessage()
    assert "failed" in failed.getMessage()


def test_a_report_may_stop_its_watchdog(loop: Any) -> None:
    stopped = threading.Event()

    def report(slow: SlowCallback) -> None:
        dog.stop()
        stopped.set()

    def dawdle() -> None:
        stopped.wait()
        loop.stop()

    dog = watchdog(loop, 0.001, report)
    loop.call_soon(dawdle)
    loop.run_forever()
    dog.stop()
    assert not dog._thread.is_alive()


def test_a_closed_loop_and_no_time_are_errors(loop: Any) -> None:
    for wrong in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="more than 0"):
            watchdog(loop, wrong)
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        watchdog(loop)


def test_a_loop_that_closes_meanwhile_is_no_error(loop: Any) -> None:
    with watchdog(loop, NEVER) as dog:
        loop.close()
        dog.look()
