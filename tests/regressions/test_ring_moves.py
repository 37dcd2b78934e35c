"""A loop that one thread after another runs: nothing that arrives in between is lost, whatever the ring's flags."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.engines("uring")

Program = Callable[..., Any]

MOVES = """
import asyncio, socket, threading, uringloop

class Count(asyncio.Protocol):
    def __init__(self): self.got, self.lost = bytearray(), loop.create_future()
    def connection_lost(self, error): self.lost.set_result(error)
    def data_received(self, data): self.got += data

loop = uringloop.new_event_loop()
pairs = [socket.socketpair() for _ in range(20)]

async def connect():
    return [(await loop.create_connection(Count, sock=left))[1] for left, _ in pairs]

protocols = loop.run_until_complete(connect())
sent = bytearray()

async def until_all():
    while any(len(protocol.got) < len(sent) for protocol in protocols):
        await asyncio.sleep(0)

def run():
    loop.run_until_complete(until_all())

def send(size):
    data = bytes([len(sent) % 251]) * size
    sent.extend(data)
    for _, right in pairs:
        right.sendall(data)

for i in range(60):
    threads = [threading.Thread(target=run)]
    if i % 3 == 0:
        send(100)  # nobody runs it: the kernel may have taken this for the thread that has gone
    threads[0].start()
    threads[0].join()
    send(1 + i)
    if i % 2:
        run()
assert all(protocol.got != b"" for protocol in protocols)
run()
assert all(protocol.got == sent for protocol in protocols)
for _, right in pairs:
    right.close()
loop.run_until_complete(asyncio.gather(*(protocol.lost for protocol in protocols)))
loop.close()
print("ok")
"""


@pytest.mark.parametrize("without", ["", "defer_taskrun", "defer_taskrun,coop_taskrun", "registered_ring"])
def test_nothing_that_arrives_between_two_threads_is_lost(program: Program, without: str) -> None:
    assert program(MOVES, URINGLOOP_DISABLE=without, URINGLOOP_ENGINE="uring").stdout == "ok\n"


COUNTING = """
import asyncio, socket, threading, uringloop

class Count(asyncio.Protocol):
    got = 0
    def data_received(self, data): self.got += len(data)

loop = uringloop.new_event_loop()
pairs = [socket.socketpair() for _ in range(20)]
sent = 0

def send(then):
    global sent
    sent += 10
    for _, right in pairs:
        right.sendall(bytes(10))
    then()

async def connect():
    return [await loop.create_connection(Count, sock=left) for left, _ in pairs]

async def until_all():
    while any(protocol.got < sent for _, protocol in made):
        await asyncio.sleep(0)

def elsewhere():
    thread = threading.Thread(target=lambda: loop.run_until_complete(until_all()))
    thread.start()
    thread.join()

made = loop.run_until_complete(connect())
"""

ENDING = """
for transport, _ in made:
    transport.abort()
loop.run_until_complete(asyncio.sleep(0))
loop.close()
assert all(protocol.got == sent for _, protocol in made)
print("all arrived")
"""


def test_completions_that_did_not_fit_are_not_left_behind(program: Program) -> None:
    code = """
for _ in range(5):
    loop.call_soon(send, loop.stop)  # in the last turn: more than the completion queue has room for
    loop.run_forever()
    elsewhere()
"""
    assert program(COUNTING + code + ENDING, URINGLOOP_TINY="1").stdout == "all arrived\n"


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
@pytest.mark.parametrize("refused", ["1", "2", "13"])
def test_a_ring_that_can_not_be_given_the_buffers_receives_without(
    program: Program, tmp_path: Path, refused: str
) -> None:
    library = tmp_path / "refuse_buffers.so"
    source = Path(__file__).with_name("refuse_buffers.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    code = """
for _ in range(3):
    send(elsewhere)
"""
    run = {"LD_PRELOAD": str(library), "REFUSED": refused}
    assert program(COUNTING + code + ENDING, **run).stdout == "all arrived\n"


def test_a_descriptor_whose_closing_was_under_way_is_not_closed_twice(program: Program) -> None:
    # A message queue's file has something to do when it is closed, so a worker of the kernel's closes it.
    code = """
import asyncio, ctypes, os, threading, uringloop
from uringloop._core.file_op import close
rt = ctypes.CDLL(None)
name = b"/uringloop-%d" % os.getpid()
fd = rt.mq_open(name, os.O_RDWR | os.O_CREAT, 0o600, None)
if fd < 0:
    raise SystemExit("no message queues")
rt.mq_unlink(name)
loop = uringloop.new_event_loop()

async def begin():
    try:
        await close(loop, fd)
    except OSError:
        pass

loop.call_soon(loop.stop)
task = loop.create_task(begin())
loop.run_forever()
try:
    while True:
        os.fstat(fd)
except OSError:
    pass
reading, writing = os.pipe()
os.dup2(reading, fd)  # another file has its number

async def end():
    await asyncio.wait([task])

thread = threading.Thread(target=lambda: loop.run_until_complete(end()))
thread.start()
thread.join()
os.fstat(fd)
loop.close()
os.fstat(fd)
print("still open")
"""
    ended = program(code, check=False)
    if "no message queues" in ended.stderr:
        pytest.skip("no message queues here")
    assert ended.stdout == "still open\n", ended.stderr


def test_a_thread_that_gets_the_number_of_the_last_one_is_another(program: Program) -> None:
    code = """
import asyncio, threading, uringloop
loop = uringloop.new_event_loop()
numbers = []

def run():
    number = threading.get_native_id()
    if not numbers or number == numbers[0]:
        loop.run_until_complete(asyncio.sleep(0.001))
        numbers.append(number)

def start():
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

start()
try:
    for _ in range(200):
        with open("/proc/sys/kernel/ns_last_pid", "w") as last:
            last.write(str(numbers[0] - 1))
        start()
        if len(numbers) == 2:
            break
except OSError:
    pass  # not ours to say: nothing to see
loop.close()
print("closed")
"""
    ended = program(code)
    assert (ended.stdout, ended.stderr) == ("closed\n", "")
