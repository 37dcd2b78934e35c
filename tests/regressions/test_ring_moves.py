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
def test_data_that_arrives_while_the_loop_changes_threads_is_not_lost(program: Program, without: str) -> None:
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


def test_overflowed_completions_are_handled_after_a_change_of_thread(program: Program) -> None:
    code = """
for _ in range(5):
    loop.call_soon(send, loop.stop)  # in the last turn: more than the completion queue has room for
    loop.run_forever()
    elsewhere()
"""
    assert program(COUNTING + code + ENDING, URINGLOOP_TINY="1").stdout == "all arrived\n"


@pytest.fixture(scope="module")
def refusing_kernel(tmp_path_factory: pytest.TempPathFactory) -> str:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    library = tmp_path_factory.mktemp("preloaded") / "refusing_kernel.so"
    source = Path(__file__).with_name("refusing_kernel.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return str(library)


@pytest.mark.parametrize("refused", ["1", "2", "13"])
def test_a_ring_that_refuses_the_buffers_receives_without_them(
    program: Program, refusing_kernel: str, refused: str
) -> None:
    code = """
for _ in range(3):
    send(elsewhere)
"""
    run = {"LD_PRELOAD": refusing_kernel, "REFUSED": refused}
    assert program(COUNTING + code + ENDING, **run).stdout == "all arrived\n"


NOT_TAKEN = """
import asyncio, ctypes, os, sys, threading, uringloop
from uringloop._core.awaitables.file_op import close
refuse_entering = ctypes.c_int.in_dll(ctypes.CDLL(os.environ["LD_PRELOAD"]), "refuse_entering")
loop = uringloop.new_event_loop()
loop.run_until_complete(asyncio.sleep(0))
fds = [os.open("/", os.O_RDONLY) for _ in range(10)]
refuse_entering.value = 1
tasks = [loop.create_task(close(loop, fd)) for fd in fds]
loop.call_soon(loop.call_soon, loop.stop)
loop.run_forever()
refuse_entering.value = 0
"""


def still_open(which: str) -> str:
    return f"print([fd for fd in {which} if os.path.lexists(f'/proc/self/fd/{{fd}}')])"


def test_entries_that_the_kernel_refused_are_submitted_by_the_next_thread(
    program: Program, refusing_kernel: str
) -> None:
    code = """
results = []
thread = threading.Thread(target=lambda: results.extend(loop.run_until_complete(asyncio.gather(*tasks))))
thread.start()
thread.join()
loop.close()
print(results)
"""
    ended = program(NOT_TAKEN + code + still_open("fds"), LD_PRELOAD=refusing_kernel, URINGLOOP_TINY="0")
    assert ended.stdout == f"{[0] * 10}\n[]\n", ended.stderr


def test_entries_that_the_kernel_refused_end_when_another_thread_closes(
    program: Program, refusing_kernel: str
) -> None:
    code = """
for task in tasks:
    task._log_destroy_pending = False
thread = threading.Thread(target=loop.close)
thread.start()
thread.join()
"""
    ended = program(NOT_TAKEN + code + still_open("fds"), LD_PRELOAD=refusing_kernel, URINGLOOP_TINY="0")
    assert (ended.stdout, ended.stderr) == ("[]\n", "")


@pytest.mark.parametrize("turns", [1, 1000])
def test_operations_on_files_end_although_the_loop_changes_threads(
    program: Program, tmp_path: Path, turns: int
) -> None:
    code = """
import asyncio, gc, os, sys, threading, uringloop
before = os.listdir("/proc/self/fd")
loop = uringloop.new_event_loop()

async def use(number):
    path = os.path.join(sys.argv[1], str(number))
    async with uringloop.open_file(path, "wb") as file:
        await file.write(b"x" * 100_000)
    assert (await uringloop.fs.stat(path)).st_size == 100_000

def in_a_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()

tasks = [loop.create_task(use(number)) for number in range(20)]
for _ in range(int(sys.argv[2])):
    loop.call_soon(loop.stop)
    in_a_thread(loop.run_forever)
    if all(task.done() for task in tasks):
        break
in_a_thread(loop.close)
print(*{task.done() and task.result() for task in tasks})
for task in tasks:
    task._log_destroy_pending = False
del loop, tasks, task
gc.collect()
assert os.listdir("/proc/self/fd") == before
"""
    ended = program(code, str(tmp_path), str(turns))
    assert (ended.stdout, ended.stderr) == ("None\n" if turns > 1 else "False\n", "")


def test_a_loop_is_collected_although_the_kernel_still_has_its_operation(
    program: Program, tmp_path: Path
) -> None:
    code = """
import asyncio, gc, os, sys, threading, uringloop, weakref
os.mkfifo(sys.argv[1])
loop = uringloop.new_event_loop()

async def use():
    async with uringloop.open_file(sys.argv[1], "wb"):
        pass

task = loop.create_task(use())
loop.call_soon(loop.stop)
loop.run_forever()
thread = threading.Thread(target=loop.close)
thread.start()
thread.join()
task._log_destroy_pending = False
left = weakref.ref(loop)
del loop, task, thread
gc.collect()
print(left())
"""
    ended = program(code, str(tmp_path / "fifo"))
    assert (ended.stdout, ended.stderr) == ("None\n", "")


@pytest.mark.parametrize("tried", ["", "again()"])
def test_a_loop_can_be_closed_in_a_thread_without_a_ring(program: Program, tried: str) -> None:
    code = f"""
import asyncio, os, resource, threading, uringloop
from uringloop._core.kernel.probe import offered
loop = uringloop.new_event_loop()
for _ in range(20):
    loop.add_reader(os.pipe()[0], print)
loop.run_until_complete(asyncio.sleep(0))
limits = resource.getrlimit(resource.RLIMIT_NOFILE)

def again():
    try:
        loop.run_until_complete(asyncio.sleep(0))
    except OSError as error:
        assert error.errno == 24, error
    else:
        assert not offered()["single_issuer"], "a ring of another thread's was used"

def close():
    {tried}
    loop.close()

thread = threading.Thread(target=close)
resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
thread.start()
thread.join()
resource.setrlimit(resource.RLIMIT_NOFILE, limits)
assert loop.is_closed() and loop.engine.closed and not loop.operations()
print("closed")
"""
    ended = program(code)
    assert ended.stdout == "closed\n", ended.stderr


def test_a_descriptor_that_the_kernel_is_closing_is_not_closed_twice(program: Program) -> None:
    # A message queue's file has something to do when it is closed, so a worker of the kernel's closes it.
    code = """
import asyncio, ctypes, os, threading, uringloop
from uringloop._core.awaitables.file_op import close
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


def test_a_new_thread_with_a_reused_thread_id_is_recognised(program: Program) -> None:
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
