"""A close that an exception ends early, Ctrl-C as a rule: what the kernel may still write to stays, and the next close
goes on with it. Not on stock asyncio, which may hang there."""

from __future__ import annotations

import asyncio
import ctypes
import functools
import gc
import os
import signal
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import uringloop


class Interrupts:
    """Freed, it sends SIGINT without any Python (`os.kill` looks for signals itself): the handler runs where compiled
    code next lets it."""

    __del__ = staticmethod(functools.partial(ctypes.CDLL(None)["raise"], signal.SIGINT))


def interrupted(loop: Any) -> None:
    loop.call_soon(print, Interrupts())
    with pytest.raises(KeyboardInterrupt):
        loop.close()


@pytest.mark.engines("uring", "epoll")
def test_an_interrupted_close_is_ended_by_the_next(new_loop: Callable[..., Any]) -> None:
    reading, writing = os.pipe()
    try:
        loop = new_loop()
        loop.add_reader(reading, print)
        loop.run_until_complete(asyncio.sleep(0))
        loop._at_close.append(loop.call_soon)  # a TypeError, before anything has been closed
        with pytest.raises(TypeError):
            loop.close()
        loop._at_close.clear()
        interrupted(loop)
        assert loop.is_closed() and not loop.engine.closed
        with pytest.raises(RuntimeError, match="closed"):
            loop.call_soon(print)
        loop.close()
        assert loop.engine.closed and not loop.operations()
        loop.close()
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.engines("uring", "epoll")
def test_a_loop_whose_close_was_interrupted_keeps_what_the_kernel_has(engine: str) -> None:
    loop: Any = uringloop.new_event_loop()
    loop.run_until_complete(asyncio.sleep(0))
    interrupted(loop)
    left = weakref.ref(loop)
    del loop
    gc.collect()
    assert left() is not None
    left().close()  # type: ignore[union-attr]
    gc.collect()
    assert left() is None


@pytest.mark.engines("fake")  # whose completions may come late
def test_a_connection_that_only_its_operation_knows_ends_with_the_loop(
    engine: str, program: Callable[..., Any]
) -> None:
    code = """
import asyncio, socket, uringloop
loop = uringloop.new_event_loop()
pairs = [socket.socketpair() for _ in range(50)]

async def main():
    for left, _ in pairs:
        transport, _ = await loop.create_connection(asyncio.Protocol, sock=left)
        await asyncio.sleep(0)
        transport.abort()
        del transport
    await asyncio.sleep(0)

loop.run_until_complete(main())
loop.close()
assert all(right.recv(1) == b"" for _, right in pairs)
print("closed")
"""
    assert program(code, PYTHONMALLOC="debug").stdout == "closed\n"
