"""After os.fork(): the child may close, abandon or even use what it inherited; the parent never notices.

Each test forks in a process of its own, which prints what it found."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

Program = Callable[..., Any]

BEGIN = """
import asyncio, gc, os, socket, sys, threading, time, warnings
import uringloop

warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads


def child_is_fine(pid):
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status


def in_child(function, wait=child_is_fine):
    pid = os.fork()
    if pid:
        wait(pid)
        return
    try:
        function()
        status = 0
    except BaseException:
        import traceback
        traceback.print_exc()
        status = 1
    finally:
        sys.stderr.flush()
        os._exit(status)


async def use():
    loop = asyncio.get_running_loop()
    left, right = socket.socketpair()
    left.setblocking(False)
    seen = loop.create_future()
    loop.add_reader(left, lambda: seen.done() or seen.set_result(left.recv(10)))
    loop.call_soon(right.send, b"hello")
    assert await seen == b"hello"
    loop.remove_reader(left)
    left.close()
    right.close()
    await asyncio.sleep(0.001)
    assert await loop.run_in_executor(None, int) == 0


parent = uringloop.new_event_loop()
parent.run_until_complete(use())
left, right = socket.socketpair()
told = []
parent.add_reader(left, lambda: (told.append(left.recv(10)), parent.stop()))
parent.call_soon(parent.stop)
parent.run_forever()
"""

END = """
right.send(b"still here")
parent.run_forever()
assert told == [b"still here"], told
parent.remove_reader(left)
parent.run_until_complete(use())
parent.run_until_complete(parent.shutdown_default_executor())
parent.close()
left.close()
right.close()
print("the parent is fine")
"""

CHILDREN = {
    "does nothing": "pass",
    "closes the inherited loop": "parent.close()",
    "abandons the inherited loop": """
global parent
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ResourceWarning)
    del parent
    gc.collect()
""",
    "makes and runs a loop of its own": "uringloop.run(use())",
    "closes the inherited loop, then makes its own": "parent.close(); uringloop.run(use())",
    "makes its own, then closes the inherited loop": "uringloop.run(use()); parent.close()",
    "runs the inherited loop": """
parent._default_executor = None  # its threads are the parent's
parent.run_until_complete(use())
parent.run_until_complete(parent.shutdown_default_executor())
parent.close()
""",
    "hands something in to the inherited loop": "parent.call_soon_threadsafe(print); parent.call_soon(print)",
    "forks again": "in_child(parent.close); in_child(lambda: uringloop.run(use()))",
}


@pytest.mark.parametrize("child", CHILDREN)
def test_the_parent_continues_whatever_the_child_does(engine: str, program: Program, child: str) -> None:
    body = "\n".join(f"    {line}" for line in CHILDREN[child].strip().split("\n"))
    code = f"{BEGIN}\ndef child():\n{body}\n\nin_child(child)\nin_child(child)\n{END}"
    assert program(code).stdout == "the parent is fine\n"


def test_a_loop_never_run_before_the_fork_is_run_by_both(engine: str, program: Program) -> None:
    code = f"""{BEGIN}
fresh = uringloop.new_event_loop()
ours, theirs = socket.socketpair()
seen = []
fresh.add_reader(ours, lambda: (seen.append(ours.recv(1)), fresh.stop()))
theirs.send(b"xy")

def child():
    fresh.run_forever()
    fresh.remove_reader(ours)
    fresh.run_until_complete(use())
    fresh.run_until_complete(fresh.shutdown_default_executor())
    fresh.close()

in_child(child)
fresh.run_forever()
assert seen == [b"y"], seen
fresh.close()
{END}"""
    assert program(code).stdout == "the parent is fine\n"


def test_the_child_of_a_running_loop_makes_its_own(engine: str, program: Program) -> None:
    code = f"""{BEGIN}
def child():
    # Python's own rule: the running loop is known by process, so the child has none.
    asyncio._set_running_loop(None)
    uringloop.run(use())

async def main():
    in_child(child)
    await asyncio.sleep(0.001)

parent.run_until_complete(main())
{END}"""
    assert program(code).stdout == "the parent is fine\n"


def test_a_wake_in_the_child_does_not_reach_the_parent(engine: str, program: Program) -> None:
    code = f"""{BEGIN}
before = parent._counts()["wakes"]
reading, writing = os.pipe()
pid = os.fork()
if pid == 0:
    threading.Thread(target=parent.call_soon_threadsafe, args=(print, "in the wrong process")).start()
    os.write(writing, b"x")
    os._exit(0)
os.read(reading, 1)
child_is_fine(pid)
os.close(reading)
os.close(writing)
{END}"""
    assert program(code).stdout == "the parent is fine\n"


def test_wakes_stay_in_their_process_while_parent_and_child_run_the_same_loop(
    engine: str, program: Program
) -> None:
    code = f"""{BEGIN}
async def many_wakes():
    for _ in range(300):
        assert await asyncio.get_running_loop().run_in_executor(None, int) == 0

def child():
    parent._default_executor = None  # its threads are the parent's
    parent.run_until_complete(many_wakes())
    parent.run_until_complete(parent.shutdown_default_executor())
    parent.close()

def run_until_its_end(pid):
    ended = os.pidfd_open(pid)
    parent.add_reader(ended, parent.stop)
    parent.run_forever()
    parent.remove_reader(ended)
    os.close(ended)
    child_is_fine(pid)

in_child(child, run_until_its_end)
{END}"""
    assert program(code).stdout == "the parent is fine\n"


@pytest.mark.engines("uring")
def test_ring_memory_is_not_in_the_child(engine: str, program: Program) -> None:
    code = f"""{BEGIN}
def rings():
    return [line for line in open("/proc/self/maps") if "io_uring" in line]

assert rings()
reading, writing = os.pipe()

def child():
    os.write(writing, b"".join(line.encode() for line in rings()))

in_child(child)
os.close(writing)
assert os.read(reading, 4096) == b"", "the child has the parent's ring mapped"
os.close(reading)
{END}"""
    assert program(code).stdout == "the parent is fine\n"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="a fork start method without the deprecation's twists")
def test_multiprocessing_by_fork_runs_loops_in_children(engine: str, program: Program) -> None:
    code = f"""{BEGIN}
import multiprocessing
process = multiprocessing.get_context("fork").Process(target=uringloop.run, args=(use(),))
process.start()
process.join()
assert process.exitcode == 0
{END}"""
    assert "the parent is fine" in program(code).stdout


def test_descriptors_of_a_loop_are_closed_on_exec(engine: str, program: Program) -> None:
    code = f"""{BEGIN}
import subprocess
listing = subprocess.run([sys.executable, "-c", "import os; print(*os.listdir('/proc/self/fd'))"],
                         close_fds=False, capture_output=True, text=True).stdout.split()
assert len(listing) <= 4, listing
{END}"""
    assert program(code).stdout == "the parent is fine\n"
