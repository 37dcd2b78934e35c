"""What nobody else wants is had without a system call, and without suspending."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

WRITE = {"x86_64": 1, "aarch64": 64}

PROGRAM = r"""
import asyncio, ctypes, gc, os, struct, sys
import uringloop


def only_write():
    # From now on the kernel kills this process for any other system call. False: it can not be asked to.
    # load the number; is it write()'s? then skip one; kill; allow
    steps = (0x20, 0, 0, 0), (0x15, 1, 0, WRITE), (0x06, 0, 0, 0x80000000), (0x06, 0, 0, 0x7FFF0000)
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HP", len(steps), ctypes.addressof(code)))
    prctl = ctypes.CDLL(None).prctl
    return prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, program) == 0


lock, semaphore, condition = uringloop.Lock(), uringloop.Semaphore(2), uringloop.Condition()
manual, auto = uringloop.Event(), uringloop.AutoResetEvent()
queues = [uringloop.Queue(), uringloop.Queue(2), uringloop.LifoQueue(2), uringloop.PriorityQueue(2)]


async def use():
    for entered in lock, semaphore, condition:
        async with entered:
            pass
    await lock.acquire()
    lock.release()
    async with condition:
        condition.notify_all()
    for event in manual, auto:
        event.set()
        await event.wait()
        event.clear()
    for queue in queues:
        await queue.put(1)
        await queue.get()
        queue.task_done()
        await queue.join()


def from_a_thread():
    for entered in lock, semaphore, condition:
        with entered:
            pass
    for event in manual, auto:
        event.set()
        event.wait_sync()
        event.clear()
    for queue in queues:
        queue.put_sync(1)
        queue.get_sync()
        queue.task_done()


def drive(coroutine):
    try:
        coroutine.send(None)
    except StopIteration:
        return
    os.write(1, b"suspended")


async def all_of_it():
    for _ in range(20):
        await use()
    gc.disable()
    if not only_write():
        os.write(1, b"refused")
        return
    for _ in range(200):
        drive(use())
    os.write(1, b"none in a task\n")
    asyncio._set_running_loop(None)
    if sys.version_info >= (3, 12):  # asked which loop runs, asyncio used to ask for the process's number
        for _ in range(200):
            from_a_thread()
        os.write(1, b"none in a thread\n")
    os.getppid()
    os.write(1, b"but nobody looked")


uringloop.run(all_of_it())
"""


@pytest.mark.skipif(os.uname().machine not in WRITE, reason="the number of write() is not known")
def test_nothing_that_is_free_takes_a_system_call() -> None:
    program = PROGRAM.replace("WRITE", str(WRITE[os.uname().machine]))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=30, check=False)
    if done.stdout == b"refused":
        pytest.skip("no seccomp here")
    expected = b"none in a task\n" + b"none in a thread\n" * (sys.version_info >= (3, 12))
    assert done.stdout == expected, done.stderr.decode()
