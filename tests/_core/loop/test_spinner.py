"""Looking a little longer before sleeping: worth it while the answer comes from another core at once, and given up
where other processes want the core."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

import uringloop
from uringloop.sync import AutoResetEvent

CALLS = 1000


@contextmanager
def crowded_core() -> Iterator[None]:
    """This thread and those it starts share one core with a process that never rests."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    neighbour = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE
    )
    try:
        assert neighbour.stdout is not None
        neighbour.stdout.readline()
        yield
    finally:
        neighbour.kill()
        neighbour.communicate()
        os.sched_setaffinity(0, allowed)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be pinned here")
def test_loops_that_call_each_other_sleep_beside_a_busy_process() -> None:
    question, answer = AutoResetEvent(), AutoResetEvent()

    async def asked() -> None:
        for _ in range(CALLS):
            await question.wait()
            answer.set()

    async def asking() -> int:
        for _ in range(CALLS):
            question.set()
            await answer.wait()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, uringloop.EventLoop)
        return loop.statistics().sleeps

    def run_asked() -> None:
        with asyncio.Runner(loop_factory=uringloop.new_event_loop) as runner:
            runner.run(asked())

    with crowded_core(), ThreadPoolExecutor(1) as other:
        ended = other.submit(run_asked)
        with asyncio.Runner(loop_factory=uringloop.new_event_loop) as runner:
            sleeps = runner.run(asking())
        ended.result()
    assert sleeps > CALLS // 2
