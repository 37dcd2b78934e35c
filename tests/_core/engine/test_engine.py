"""What every engine does: counts, keeps its operations, gives everything back."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Callable
from typing import Any

import pytest

from uringloop._core.lifetime.counters import DEBUG_BUILD, counters


def test_operations_are_listed_while_they_are_in_the_kernel(loop: Any) -> None:
    left, right = socket.socketpair()
    with left, right:
        left.setblocking(False)
        task = loop.create_task(loop.sock_recv(left, 1))
        loop.call_soon(loop.call_soon, loop.stop)
        loop.run_forever()
        listed = [op for op in loop.engine.ops if op.fd == left.fileno()]
        assert len(listed) == 1 and listed[0].in_kernel
        assert "SockRecv readable" in repr(listed[0]) and f"fd={left.fileno()}" in repr(listed[0])
        assert len(loop.engine.ops) == loop._counts()["in_kernel"]
        right.send(b"x")
        assert loop.run_until_complete(task) == b"x"
        del listed


def test_the_counts_add_up(loop: Any) -> None:
    loop.run_until_complete(asyncio.sleep(0.001))
    counts = loop._counts()
    assert counts["ready"] == counts["waiting"] == counts["timers"] == 0
    assert counts["submitted"] >= counts["in_kernel"] >= 1
    loop.close()
    assert loop._counts()["in_kernel"] == 0
    assert loop.engine.closed


def test_a_closed_engine_is_closed_once(loop: Any) -> None:
    loop.close()
    loop.close()
    assert loop.engine.closed


@pytest.mark.skipif(not DEBUG_BUILD, reason="a release build counts nothing")
def test_a_debug_build_counts_what_is_made_and_freed(new_loop: Callable[..., Any]) -> None:
    gc.collect()
    before = counters()
    loop = new_loop()
    handles = [loop.call_soon(print) for _ in range(10)]
    timers = [loop.call_later(3600, print) for _ in range(10)]
    during = counters()
    assert during["handle"][0] - during["handle"][1] >= before["handle"][0] - before["handle"][1] + 20
    assert during["timer"][0] - during["timer"][1] == before["timer"][0] - before["timer"][1] + 10
    assert during["fd"][0] - during["fd"][1] > before["fd"][0] - before["fd"][1]
    loop.close()
    del handles, timers


@pytest.mark.skipif(DEBUG_BUILD, reason="a debug build counts")
def test_a_release_build_counts_nothing(loop: Any) -> None:
    loop.run_until_complete(asyncio.sleep(0))
    assert set(counters().values()) == {(0, 0)}
