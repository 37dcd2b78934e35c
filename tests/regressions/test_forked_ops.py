"""A child that goes on in a loop takes nothing from the ring of uringloop.ops, which is the parent's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("liburing")

Program = Callable[..., Any]


@pytest.mark.engines("uring", "epoll")
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="since then asyncio runs no task in a forked child")
def test_an_operation_of_the_parent_ends_in_the_parent(engine: str, program: Program) -> None:
    code = """
import asyncio, os, signal, sys, traceback
import liburing, uringloop
from uringloop import ops

loop = uringloop.new_event_loop()
there = [os.pipe() for _ in range(2)]
go_on = os.pipe()

async def read(pipe):
    buffer = bytearray(10)
    count = await ops.submit(liburing.io_uring_prep_read, pipe[0], buffer, 10, 0)
    return bytes(buffer[:count])

def sleep(seconds):
    future = loop.create_future()
    loop.call_later(seconds, future.set_result, None)
    return future

async def child():
    try:
        await reading
        raise AssertionError("the child was told of what the parent read")
    except OSError as error:
        assert error.errno == 125, error
    os.write(there[0][1], b"to parent")
    for _ in range(50):
        await sleep(0.001)
    asyncio._set_running_loop(loop)
    os.write(there[1][1], b"to child")
    assert await read(there[1]) == b"to child"  # by a ring of its own

def end(task):
    status = 0
    if task.exception() is not None:
        traceback.print_exception(task.exception())
        status = 1
    sys.stderr.flush()
    os._exit(status)

async def main():
    global reading
    reading = loop.create_task(read(there[0]))
    await asyncio.sleep(0.001)
    pid = os.fork()
    if pid == 0:
        signal.alarm(15)
        loop.create_task(child()).add_done_callback(end)
        await loop.create_future()
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
    assert await asyncio.wait_for(reading, 5) == b"to parent"
    assert await asyncio.gather(read(there[1]), asyncio.to_thread(os.write, there[1][1], b"again")) == [b"again", 5]

loop.run_until_complete(main())
loop.run_until_complete(loop.shutdown_default_executor())
loop.close()
print("the parent is fine")
"""
    ended = program(code)
    assert (ended.stdout, ended.stderr) == ("the parent is fine\n", "")
