"""A ring ends with its loop, or when another thread takes the loop over, whatever the thread that ran it does next."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from uringloop._core.kernel.probe import offered

Program = Callable[..., Any]
NewLoop = Callable[..., Any]


async def many_turns() -> None:
    """Each of which enters the kernel: long enough for all that a loop does only in a long run."""
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        for _ in range(100):
            loop.call_soon(theirs.send, b"x")
            await loop.sock_recv(ours, 1)


def call_in(loop: Any, function: Callable[[], object]) -> None:
    """Run it in the loop, which another thread runs, and wait for its end."""
    done = threading.Event()
    loop.call_soon_threadsafe(function)
    loop.call_soon_threadsafe(done.set)
    assert done.wait(10)


@pytest.mark.contract
def test_the_peer_of_a_transport_closed_after_a_change_of_thread_sees_its_end(loop: Any) -> None:
    ours, theirs = socket.socketpair()
    theirs.settimeout(5)
    transport, _ = loop.run_until_complete(loop.create_connection(asyncio.Protocol, sock=ours))
    loop.run_until_complete(many_turns())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    call_in(loop, transport.close)
    assert theirs.recv(1) == b""
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    theirs.close()


@pytest.mark.contract
def test_the_port_of_a_server_closed_after_a_change_of_thread_is_free(loop: Any) -> None:
    server = loop.run_until_complete(loop.create_server(asyncio.Protocol, "127.0.0.1", 0))
    address = server.sockets[0].getsockname()
    loop.run_until_complete(many_turns())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    call_in(loop, server.close)
    try:
        # Accepted by the backlog at most, while the kernel takes the first thread's ring down, and reset then.
        with socket.create_connection(address, timeout=5) as client, pytest.raises(ConnectionResetError):
            client.recv(1)
    except ConnectionRefusedError:
        pass
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(address)
        again.listen()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


@pytest.mark.contract
def test_a_loop_closed_by_another_thread_keeps_no_socket_open(new_loop: NewLoop) -> None:
    loop = new_loop()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.settimeout(5)
    task = loop.create_task(loop.sock_recv(ours, 1))
    task._log_destroy_pending = False
    with ThreadPoolExecutor(1) as pool:  # whose thread lives on
        pool.submit(loop.run_until_complete, many_turns()).result()
        loop.close()
        del task
        ours.close()
        assert theirs.recv(1) == b""
    theirs.close()


@pytest.mark.contract
def test_a_loop_closed_after_its_thread_ended_keeps_no_socket_open(new_loop: NewLoop) -> None:
    loop = new_loop()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.settimeout(5)
    task = loop.create_task(loop.sock_recv(ours, 1))
    task._log_destroy_pending = False
    thread = threading.Thread(target=lambda: loop.run_until_complete(many_turns()))
    thread.start()
    thread.join()
    loop.close()
    del task
    ours.close()
    assert theirs.recv(1) == b""
    theirs.close()


BEGIN = """
import asyncio, ctypes, gc, os, socket, sys, threading, time, warnings
import uringloop
warnings.simplefilter("ignore", ResourceWarning)

async def many_turns():
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        for _ in range(100):
            loop.call_soon(theirs.send, b"x")
            await loop.sock_recv(ours, 1)
"""


@pytest.mark.engines("uring")
@pytest.mark.skipif(not offered()["fixed_buffers"], reason="nothing is pinned here")
@pytest.mark.parametrize("end", ["loop.close()", "del loop; gc.collect()"])
def test_closed_loops_keep_no_memory_pinned(engine: str, program: Program, end: str) -> None:
    code = f"""{BEGIN}
from uringloop.files import FixedBuffers

def pinned():
    return [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmPin")][0]

async def use():
    buffers = FixedBuffers(1, 1 << 20)
    await many_turns()
    return buffers, await buffers.lend()

for _ in range(20):
    loop = uringloop.new_event_loop()
    lent = loop.run_until_complete(use())
    assert pinned() >= 1 << 10
    {end}
    del lent
gc.collect()
latest = time.monotonic() + 10
while pinned() and time.monotonic() < latest:
    time.sleep(0.01)  # the kernel takes rings down behind our back
print(pinned())
"""
    assert program(code).stdout == "0\n"


@pytest.fixture(scope="module")
def other_kernel(tmp_path_factory: pytest.TempPathFactory) -> str:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    library = tmp_path_factory.mktemp("preloaded") / "other_kernel.so"
    source = Path(__file__).with_name("other_kernel.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return str(library)


SLOTS = f"""{BEGIN}
kernel = ctypes.CDLL(os.environ["LD_PRELOAD"])

def slots(name="slots"):
    return ctypes.c_int.in_dll(kernel, name).value
"""

needs_slots = pytest.mark.skipif(not offered()["registered_ring"], reason="switched off")


@pytest.mark.engines("uring")
@needs_slots
def test_a_run_frees_its_threads_slot_however_it_ends(
    engine: str, program: Program, other_kernel: str
) -> None:
    code = f"""{SLOTS}
class Told(BaseException):
    pass

async def main(error):
    await many_turns()
    seen.append(slots())
    if error is not None:
        raise error

seen = []
loop = uringloop.new_event_loop()
for error in (None, ValueError(), KeyboardInterrupt(), SystemExit(), Told()):
    try:
        loop.run_until_complete(main(error))
    except BaseException as raised:
        assert raised is error
    assert slots() == 0, error
loop.call_soon(loop.stop)
loop.run_forever()
loop.close()
print(seen, slots())
"""
    assert program(code, LD_PRELOAD=other_kernel).stdout == f"{[1] * 5} 0\n"


@pytest.mark.engines("uring")
@needs_slots
def test_short_runs_take_no_slot(engine: str, program: Program, other_kernel: str) -> None:
    code = f"""{SLOTS}
loop = uringloop.new_event_loop()
for _ in range(200):
    loop.run_until_complete(asyncio.sleep(0))
loop.close()
print(slots("most_slots"))
"""
    assert program(code, LD_PRELOAD=other_kernel).stdout == "0\n"


@pytest.mark.parametrize("kernel", ["", "no slots"])
def test_one_thread_runs_a_hundred_loops(
    engine: str, program: Program, other_kernel: str, kernel: str
) -> None:
    code = f"""{SLOTS}
loops = [uringloop.new_event_loop() for _ in range(100)]
for _ in range(3):
    for loop in loops:
        loop.run_until_complete(many_turns())
for loop in loops:
    thread = threading.Thread(target=lambda: loop.run_until_complete(many_turns()))
    thread.start()
    thread.join()
for loop in loops:
    loop.close()
print(slots(), slots("most_slots") <= 1)
"""
    assert program(code, LD_PRELOAD=other_kernel, KERNEL=kernel).stdout == "0 True\n"
