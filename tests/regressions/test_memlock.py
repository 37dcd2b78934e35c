"""Where the kernel counts rings in RLIMIT_MEMLOCK, and that is not enough for all loops, programs keep working."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from uringloop._core.kernel.probe import refusal

Program = Callable[..., Any]

pytestmark = [
    pytest.mark.skipif(refusal() is not None, reason="this machine refuses io_uring itself"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs a user of whom nobody else has rings"),
]

BEGIN = """
import asyncio, ctypes, os, resource, socket, sys, threading
import uringloop
import uringloop.commands.doctor

# A user of its own, whose processes share the limit, with all that root may do but to lock any memory.
libc, header, capabilities = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert libc.prctl(8, 1, 0, 0, 0) == 0  # PR_SET_KEEPCAPS
os.setuid(100_000 + os.getpid())
assert libc.capget(header, capabilities) == 0
capabilities[0] = capabilities[1] = capabilities[1] & ~(1 << 14)  # CAP_IPC_LOCK
assert libc.capset(header, capabilities) == 0
hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]

def lock_at_most(size):
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (size, hard))

try:
    if hard != resource.RLIM_INFINITY and hard < 1 << 23:
        print("not counted")  # as far as these tests need it
        sys.exit()
    lock_at_most(0)
    uringloop.new_event_loop(engine="uring").close()
    print("not counted")
    sys.exit()
except OSError:
    lock_at_most(1 << 23)
os.environ["URINGLOOP_ENGINE"] = ""

def use(loop):
    async def main():
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            loop.call_soon(theirs.send, b"x")
            assert await loop.sock_recv(ours, 1) == b"x"
            await asyncio.sleep(0.001)
    loop.run_until_complete(main())

def in_a_thread(function, *args):
    errors = []
    def call():
        try:
            function(*args)
        except OSError as error:
            errors.append(error)
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    return errors
"""


@pytest.fixture
def run(program: Program) -> Callable[..., tuple[str, str]]:
    def run(code: str, **environment: str) -> tuple[str, str]:
        ended = program(BEGIN + code, **environment)
        if ended.stdout == "not counted\n":
            pytest.skip("rings are not counted in RLIMIT_MEMLOCK here")
        return ended.stdout, ended.stderr

    return run


@pytest.mark.parametrize("size", [0, 4096, 8192, 65536, 1 << 18])
def test_loops_without_a_ring_run_on_epoll_and_warn_once(
    run: Callable[..., tuple[str, str]], size: int
) -> None:
    stdout, stderr = run(
        f"""
lock_at_most({size})
loops = [uringloop.new_event_loop() for _ in range(150)]
for loop in loops:
    use(loop)
engines = [loop._engine_name for loop in loops]
for loop in loops:
    loop.close()
print(engines.count("uring"), engines.count("epoll"))
""",
        PYTHONWARNINGS="default",
    )
    rings, epolls = map(int, stdout.split())
    assert rings + epolls == 150 and epolls
    assert rings >= 1 if size >= 8192 else rings == 0
    assert stderr.count("UringUnavailableWarning") == 1
    assert "RLIMIT_MEMLOCK" in stderr and f" {size // 1024} KB" in stderr and "ulimit -l" in stderr


def test_engine_uring_without_a_ring_raises_with_the_limit(run: Callable[..., tuple[str, str]]) -> None:
    stdout, stderr = run("""
for size in (0, 8192):
    lock_at_most(size)
    loops = []
    try:
        while True:
            loops.append(uringloop.new_event_loop(engine="uring"))
    except uringloop.UringUnavailable as error:
        assert error.errno == 12
        print(error)
    for loop in loops:
        loop.close()
""")
    assert stderr == ""
    assert stdout.count("RLIMIT_MEMLOCK") == 2 and " 0 KB" in stdout and " 8 KB" in stdout


def test_a_loop_can_change_threads_even_if_only_one_ring_fits(run: Callable[..., tuple[str, str]]) -> None:
    stdout, stderr = run("""
from uringloop._core.kernel.probe import locked_by_a_ring
size = locked_by_a_ring()  # by one that the kernel takes down in the background, when it comes to it
loop = uringloop.new_event_loop()
lock_at_most(size)
entries = repr(loop.engine).split("in kernel")[1].split("entries")[0]
told = []
ours, theirs = socket.socketpair()
loop.add_reader(ours, lambda: told.append(ours.recv(1)))
for _ in range(5):
    use(loop)
    theirs.send(b"x")
    assert not in_a_thread(use, loop)
assert entries in repr(loop.engine), "its rings got smaller"
print(loop._engine_name, told)
loop.remove_reader(ours)
loop.close()
ours.close()
theirs.close()
""")
    assert (stdout, stderr) == (f"uring {[b'x'] * 5}\n", "")


def test_a_loop_without_a_ring_in_a_second_thread_raises_and_can_run_later(
    run: Callable[..., tuple[str, str]],
) -> None:
    stdout, stderr = run("""
lock_at_most(1 << 23)
loop, closed = uringloop.new_event_loop(), uringloop.new_event_loop()
told = []
ours, theirs = socket.socketpair()
loop.add_reader(ours, lambda: told.append(ours.recv(1)))
def turn(loop):
    loop.call_soon(loop.stop)
    loop.run_forever()
turn(loop)
turn(closed)
lock_at_most(0)
theirs.send(b"x")
for _ in range(2):
    for unlucky in (loop, closed):
        error, = in_a_thread(turn, unlucky)
        assert error.errno == 12 and "RLIMIT_MEMLOCK" in str(error), error
assert not loop.is_running() and not loop.is_closed()
closed.close()
lock_at_most(1 << 23)
assert not in_a_thread(turn, loop)  # what asked it to stop is still there
assert not in_a_thread(use, loop)
print(told)
loop.remove_reader(ours)
loop.close()
ours.close()
theirs.close()
""")
    assert (stdout, stderr) == (f"{[b'x']}\n", "")


@pytest.mark.parametrize("running", [False, True])
def test_a_forked_child_without_a_ring_reports_the_reason(
    run: Callable[..., tuple[str, str]], running: bool
) -> None:
    stdout, stderr = run(f"""
loop = uringloop.new_event_loop()
loop.run_until_complete(asyncio.sleep(0))

def fork():
    pid = os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status))
        return
    lock_at_most(0)
    if {running}:
        stop.cancel()  # so that there is nothing to do but to sleep, in a ring
        return
    try:
        loop.run_forever()
    except OSError as error:
        end(error)

def end(error):
    assert error.errno == 12 and "RLIMIT_MEMLOCK" in str(error), error
    loop.close()
    other = uringloop.new_event_loop(engine="epoll")
    use(other)
    other.close()
    os._exit(7)

if {running}:
    loop.call_soon(fork)
    stop = loop.call_later(0.001, loop.stop)
    try:
        loop.run_forever()
    except OSError as error:
        end(error)
else:
    fork()
use(loop)
loop.close()
""")
    assert (stdout, stderr) == ("7\n", "")


def test_doctor_prints_how_many_loops_fit(run: Callable[..., tuple[str, str]]) -> None:
    code = """
lock_at_most(8 << 20)
sys.exit(uringloop.commands.doctor.main(__import__("argparse").Namespace(json=False)))
"""
    stdout, stderr = run(code, URINGLOOP_TINY="0")
    assert stderr == ""
    assert stdout.startswith("io_uring is used") and "8192 KB" in stdout and "room for 97 loops" in stdout


def test_doctor_prints_that_no_loop_fits(run: Callable[..., tuple[str, str]]) -> None:
    stdout, _ = run("""
lock_at_most(0)
status = uringloop.commands.doctor.main(__import__("argparse").Namespace(json=False))
assert status == 1, status
uringloop.commands.doctor.main(__import__("argparse").Namespace(json=True))
""")
    text, _, document = stdout.partition("\n{")
    assert text.startswith("io_uring is refused") and "RLIMIT_MEMLOCK" in text and "on epoll" in text
    found = json.loads("{" + document)
    assert found["usable"] is False and found["engine"] == found["tried"] == "epoll"
    assert [name for name, feature in found["features"].items() if feature["used"]] in ([], ["udp_segment"])
