"""A child that was forked while a loop ran goes on in it, or stops it: what it has works there, or raises. What is the
parent's is not disturbed. Each test forks in a process of its own, which prints what it found."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.tls.peers import CERTIFICATES

Program = Callable[..., Any]

BEGIN = """
import asyncio, os, signal, socket, sys, threading, traceback, warnings
if os.environ["LOOP"] == "asyncio":
    new_event_loop = asyncio.new_event_loop
else:
    import uringloop
    new_event_loop = uringloop.new_event_loop
warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
loop = new_event_loop()


def fork(child, parent=lambda: None):
    # Fork within a turn; the child goes on in the loop with its coroutine, and ends. The parent waits for that.
    pid = os.fork()
    if pid == 0:
        signal.alarm(15)
        task = loop.create_task(child())
        task.add_done_callback(end_child)
        return loop.create_future()
    parent()
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
    done = loop.create_future()
    done.set_result(None)
    return done


def end_child(task):
    status = 0
    if task.exception() is not None:
        traceback.print_exception(task.exception())
        status = 1
    sys.stderr.flush()
    os._exit(status)


def sleep(seconds):  # asyncio's own asks for the running loop, and a forked child has none
    future = loop.create_future()
    loop.call_later(seconds, future.set_result, None)
    return future


def made_pair():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.settimeout(10)
    return ours, theirs
"""

END = """
loop.run_until_complete(main())
loop.run_until_complete(sleep(0.001))
loop.close()
print("the parent is fine")
"""


TASKS_IN_A_CHILD = pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="since Python 3.14 asyncio runs no task in a forked child"
)

# What a socket does not take at once both send, as in asyncio, and the fake kernel's takes little.
BOTH_SEND_WHAT_WAITS = pytest.mark.engines("uring", "epoll", "asyncio")


@pytest.fixture
def run(engine: str, program: Program) -> Callable[..., None]:
    def run(code: str, *arguments: str) -> None:
        ended = program(BEGIN + code + END, *arguments, LOOP=engine)
        assert (ended.stdout, ended.stderr) == ("the parent is fine\n", "")

    return run


@pytest.mark.contract
@TASKS_IN_A_CHILD
def test_a_forked_child_goes_on_in_the_running_loop(run: Callable[[str], None]) -> None:
    run("""
async def child():
    for _ in range(300):
        await asyncio.sleep(0)
    await sleep(0.001)

async def main():
    await asyncio.sleep(0)
    await fork(child)
    await fork(child)
""")


@pytest.mark.contract
def test_a_forked_child_stops_the_running_loop(engine: str, program: Program) -> None:
    code = """
pids = []

def callback():
    pids.append(os.fork())
    loop.stop()

loop.call_soon(callback)
loop.run_forever()
if pids[0] == 0:
    loop.close()
    second = new_event_loop()
    second.run_until_complete(asyncio.sleep(0.001))
    second.close()
    os._exit(7)
_, status = os.waitpid(pids[0], 0)
print(os.waitstatus_to_exitcode(status))
loop.close()
"""
    assert program(BEGIN + code, LOOP=engine).stdout == "7\n"


@pytest.mark.contract
@TASKS_IN_A_CHILD
def test_sockets_timers_and_calls_of_threads_work_in_a_child_that_goes_on(run: Callable[[str], None]) -> None:
    run("""
async def child():
    ours, theirs = made_pair()
    loop.call_later(0.001, theirs.send, b"late")
    assert await loop.sock_recv(ours, 10) == b"late"
    told = loop.create_future()
    loop.add_reader(ours, lambda: (ours.recv(10), loop.remove_reader(ours), told.set_result(None)))
    theirs.send(b"x")
    await told
    for _ in range(100):
        called = loop.create_future()
        thread = threading.Thread(target=loop.call_soon_threadsafe, args=(called.set_result, None))
        thread.start()
        await called
        thread.join()
    ours.close()
    theirs.close()

async def main():
    await sleep(0.001)
    await fork(child)
""")


@pytest.mark.contract
@TASKS_IN_A_CHILD
def test_inherited_transports_work_in_a_child_that_goes_on(run: Callable[[str], None]) -> None:
    run("""
class Collect(asyncio.Protocol):
    def __init__(self):
        self.got = b""
    def data_received(self, data):
        self.got += data

async def child():
    theirs.send(b"to the child")
    while protocol.got != b"to the child":
        await sleep(0.001)
    transport.write(b"from the child")
    await sleep(0.001)
    while transport.get_write_buffer_size():
        await sleep(0.001)

async def main():
    global theirs, protocol, transport
    ours, theirs = made_pair()
    transport, protocol = await loop.create_connection(Collect, sock=ours)
    await sleep(0.001)
    await fork(child)
    assert theirs.recv(14, socket.MSG_WAITALL) == b"from the child"
    theirs.send(b"to the parent")
    while protocol.got != b"to the parent":
        await sleep(0.001)
    transport.close()
    await asyncio.sleep(0)
    theirs.close()
""")


@BOTH_SEND_WHAT_WAITS
@pytest.mark.contract
@TASKS_IN_A_CHILD
@pytest.mark.parametrize("before", ["", "and before that", "much, and before that"])
def test_data_written_before_the_fork_is_sent_once(run: Callable[..., None], before: str) -> None:
    # The send of the turn before may have ended, and the loop not have heard of it: the next one waits behind it.
    run(
        """
async def child():
    for _ in range(10):
        await sleep(0.001)

async def main():
    ours, theirs = made_pair()
    transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
    before = sys.argv[1].encode() * (10000 if sys.argv[1].startswith("much") else 1)
    if before:
        transport.write(before)
        await asyncio.sleep(0)
    transport.write(b"once")
    await fork(child)
    transport.write(b", and then")
    await sleep(0.001)
    transport.close()
    await sleep(0.001)
    got = b""
    while data := theirs.recv(100):
        got += data
        await asyncio.sleep(0)
    assert got == before + b"once, and then", (len(got), got[-100:])
    theirs.close()
""",
        before,
    )


@BOTH_SEND_WHAT_WAITS
@pytest.mark.contract
@TASKS_IN_A_CHILD
@pytest.mark.parametrize("written", ["in a callback", "while data is delivered"])
def test_tls_data_written_before_the_fork_is_sent_once(run: Callable[..., None], written: str) -> None:
    # Sent twice, the peer would refuse the second record, and end the connection.
    run(
        """
import ssl
server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
server.load_cert_chain(sys.argv[1] + "/localhost.pem", sys.argv[1] + "/localhost.key")
client = ssl.create_default_context(cafile=sys.argv[1] + "/ca.pem")

class Answer(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.forked = loop.create_future()
    def data_received(self, data):
        self.transport.write(b"once")
        if fork(child).done():
            self.forked.set_result(None)

async def child():
    for _ in range(10):
        await sleep(0.001)

def received(tls):
    got = b""
    while data := tls.recv(100):
        got += data
    return got

async def main():
    ours, theirs = made_pair()
    shaken = loop.run_in_executor(None, lambda: client.wrap_socket(theirs, server_hostname="localhost"))
    transport, protocol = await loop.connect_accepted_socket(Answer, ours, ssl=server)
    tls = await shaken
    if sys.argv[2] == "in a callback":
        protocol.data_received(b"")
    else:
        tls.send(b"to be answered")
    await protocol.forked
    transport.write(b", and then")
    await sleep(0.001)
    transport.close()
    got = await loop.run_in_executor(None, received, tls)
    assert got == b"once, and then", got
    tls.close()
    await loop.shutdown_default_executor()
""",
        str(CERTIFICATES),
        written,
    )


@BOTH_SEND_WHAT_WAITS
@pytest.mark.contract
@TASKS_IN_A_CHILD
def test_datagrams_sent_before_the_fork_leave_once(run: Callable[..., None]) -> None:
    run("""
class Answer(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport
        self.forked = loop.create_future()
    def datagram_received(self, data, address):
        self.transport.sendto(b"once", address)
        if fork(child).done():
            self.forked.set_result(address)

async def child():
    for _ in range(10):
        await sleep(0.001)

async def main():
    transport, protocol = await loop.create_datagram_endpoint(Answer, local_addr=("127.0.0.1", 0))
    peer = socket.socket(type=socket.SOCK_DGRAM)
    peer.settimeout(10)
    peer.connect(transport.get_extra_info("sockname"))
    peer.send(b"to be answered")
    transport.sendto(b", and then", await protocol.forked)
    assert [peer.recv(100), peer.recv(100)] == [b"once", b", and then"]
    transport.close()
    await sleep(0.001)
    peer.close()
""")


@TASKS_IN_A_CHILD
def test_a_transport_closed_in_the_child_goes_on_in_the_parent(run: Callable[[str], None]) -> None:
    # In asyncio both have one epoll: the child takes the parent's socket out of it.
    run("""
async def child():
    transport.abort()
    server.close()
    await sleep(0.001)

async def main():
    global transport, server
    ours, theirs = made_pair()
    told = loop.create_future()
    class Tell(asyncio.Protocol):
        def data_received(self, data):
            if not told.done():
                told.set_result(data)
    transport, _ = await loop.create_connection(Tell, sock=ours)
    server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
    await sleep(0.001)
    await fork(child)
    theirs.send(b"still here")
    assert b"still here".startswith(await told)
    connected, _ = await loop.create_connection(asyncio.Protocol, *server.sockets[0].getsockname())
    connected.close()
    transport.close()
    server.close()
    await asyncio.sleep(0)
    theirs.close()
""")


@TASKS_IN_A_CHILD
def test_calls_of_files_finish_or_raise_in_a_child_that_goes_on(
    engine: str, program: Program, tmp_path: Any
) -> None:
    code = """
from uringloop import fs, open_file

async def child():
    for task in tasks:
        try:
            await task
        except OSError as error:
            assert error.errno == 125, error  # ECANCELED: the kernel, or a thread, does it for the parent
    # asyncio's own rule: what asks for the running loop is told that a forked child has none.
    asyncio._set_running_loop(loop)
    file = await open_file(os.path.join(path, "child"), "wb")
    await file.write(b"x" * 100000)
    await file.close()

async def main():
    global tasks, path
    path = sys.argv[1]
    tasks = [loop.create_task(fs.mkdir(os.path.join(path, str(i)))) for i in range(5)]
    await asyncio.sleep(0)
    await fork(child)
    for task in tasks:
        await task
    assert sorted(os.listdir(path)) == ["0", "1", "2", "3", "4", "child"]
    assert os.path.getsize(os.path.join(path, "child")) == 100000
"""
    ended = program(BEGIN + code + END, str(tmp_path), LOOP=engine)
    assert (ended.stdout, ended.stderr) == ("the parent is fine\n", "")


@TASKS_IN_A_CHILD
def test_signals_stay_in_their_process_while_both_go_on(run: Callable[[str], None]) -> None:
    run("""
async def child():
    await sleep(0.001)  # it listens for signals of its own
    assert not told
    os.kill(os.getpid(), signal.SIGUSR1)
    while not told:
        await sleep(0.001)
    assert told == [os.getpid()]
    os.kill(os.getppid(), signal.SIGUSR2)
    assert os.read(go_on[0], 1) == b"x"
    for _ in range(10):
        await sleep(0.001)
    assert told == [os.getpid()]


async def main():
    global told, go_on
    told, go_on, heard = [], os.pipe(), loop.create_future()
    loop.add_signal_handler(signal.SIGUSR1, lambda: told.append(os.getpid()))
    loop.add_signal_handler(signal.SIGUSR2, heard.set_result, None)
    await sleep(0.001)
    pid = os.fork()
    if pid == 0:
        signal.alarm(15)
        task = loop.create_task(child())
        task.add_done_callback(end_child)
        await loop.create_future()
    await heard  # the child was told of its signal, and the parent of its own
    assert not told
    os.kill(os.getpid(), signal.SIGUSR1)
    while not told:
        await sleep(0.001)
    os.write(go_on[1], b"x")
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
    assert told == [os.getpid()]
""")


@pytest.mark.engines("uring")
def test_a_forked_child_closes_the_rings_of_its_parent(engine: str, program: Program) -> None:
    # A ring that a child had a descriptor of would outlive the parent's loop, with all that is armed in it.
    code = """
def rings():
    links = (os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd"))
    return sum("io_uring" in os.readlink(link) for link in links if os.path.lexists(link))

async def main():
    assert rings() == 1
    pid = os.fork()
    if pid == 0:
        os._exit(rings())
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
"""
    ended = program(BEGIN + code + END, LOOP=engine)
    assert (ended.stdout, ended.stderr) == ("the parent is fine\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_a_forked_child_without_a_ring_raises_an_error_with_the_reason(engine: str, program: Program) -> None:
    code = """
import resource

def limit(number):
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]

async def main():
    await asyncio.sleep(0)
    pid = os.fork()
    if pid == 0:
        limit(3)
        await loop.create_future()
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status

try:
    loop.run_until_complete(main())
except OSError as error:
    assert error.errno == 24, error
    limit(100)
    loop.run_until_complete(sleep(0.001))
    loop.close()
    os._exit(0)
loop.close()
print("the parent is fine")
"""
    assert program(BEGIN + code, LOOP=engine).stdout == "the parent is fine\n"
