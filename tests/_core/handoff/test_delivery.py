"""Delivery: how a task of asyncio's own loop is woken from another thread."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from typing import Any

import pytest

from uringloop.sync.lock import Lock


class InterruptedLoop(asyncio.SelectorEventLoop):
    """As if Ctrl-C came while another thread hands something in, after the loop has it or before."""

    late: bool
    interrupts = 0

    def call_soon_threadsafe(self, *args: Any, **options: Any) -> Any:
        if self.interrupts:
            self.interrupts -= 1
            if self.late:
                super().call_soon_threadsafe(*args, **options)
            raise KeyboardInterrupt
        return super().call_soon_threadsafe(*args, **options)


@pytest.mark.parametrize("late", [False, True])
def test_interrupt_during_the_wake_of_a_foreign_loop_loses_no_waiter(engine: str, late: bool) -> None:
    lock, heard = Lock(), []
    loop = InterruptedLoop()
    loop.late = late

    async def enter() -> None:
        async with lock:
            pass

    before = signal.signal(signal.SIGINT, lambda *_: heard.append("SIGINT"))
    try:
        lock.acquire_nowait()
        thread = threading.Thread(target=loop.run_until_complete, args=[enter()], daemon=True)
        thread.start()
        while not lock.waiting:
            time.sleep(0.001)
        loop.interrupts = 2
        lock.release()
        thread.join(20)
        assert not thread.is_alive()
        loop.close()
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == ["SIGINT"]  # told, once what it interrupted was done
    assert not lock.locked()
    assert lock.statistics()["passes"] == 0
