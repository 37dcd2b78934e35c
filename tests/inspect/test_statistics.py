import asyncio
import threading
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from uringloop.inspect.statistics import COUNTERS, Statistics


def test_statistics_count_turns_and_callbacks(loop: Any) -> None:
    before = loop.statistics()
    loop.run_until_complete(asyncio.sleep(0.001))
    after = loop.statistics()
    assert after.turns > before.turns
    assert after.callbacks > before.callbacks
    assert after.sleeps > before.sleeps
    assert after.system_calls > before.system_calls
    assert after.engine in repr(loop)


def test_statistics_show_timers_and_ready_callbacks(loop: Any) -> None:
    async def main() -> Statistics:
        loop.call_later(60, print)
        loop.call_soon(print)
        found: Statistics = loop.statistics()
        return found

    found = loop.run_until_complete(main())
    assert found.timers == 1
    assert found.ready >= 1
    assert found.cpu_seconds > 0
    assert loop.statistics().cpu_seconds == 0


def test_another_thread_s_calls_wake(loop: Any) -> None:
    async def main() -> None:
        called = asyncio.Event()
        thread = threading.Timer(0.01, loop.call_soon_threadsafe, [called.set])
        thread.start()
        await called.wait()
        thread.join()

    loop.run_until_complete(main())
    assert loop.statistics().wakes >= 1


def test_statistics_are_frozen_and_have_the_counters_as_fields(loop: Any) -> None:
    found = loop.statistics()
    with pytest.raises(FrozenInstanceError):
        found.turns = 0
    assert set(COUNTERS) <= {field.name for field in fields(Statistics)}


def test_a_closed_loop_still_says_what_it_did(loop: Any) -> None:
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert loop.statistics().turns > 0
