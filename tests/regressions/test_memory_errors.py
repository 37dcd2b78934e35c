"""Each allocation fails once, in turn, while a loop works. The caller, the protocol or the exception handler is told,
the connection does not stay open and mute, and the next call works. asyncio's loop lets some of these errors out of
run_forever(), and so do we: that is told, too."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

pytestmark = [
    pytest.mark.engines("uring", "epoll"),
    pytest.mark.skipif(importlib.util.find_spec("_testcapi") is None, reason="this Python has no _testcapi"),
]

# On free-threaded CPython 3.13 PyList_New() reuses a list object whose items were freed. Where it gets no memory for
# new items it frees the old ones again, which breaks the heap (gh-118331, gh-152125): a sweep crashes there sooner or
# later, on asyncio's own loop too.
FREES_ITEMS_TWICE = """
import os, sys
import _testcapi

kept = object()
freed = [kept, kept, kept]
del freed
before = sys.getrefcount(kept)
_testcapi.set_nomemory(0, 1)
try:
    [kept, kept, kept]
except MemoryError:
    pass
_testcapi.remove_mem_hooks()
os.write(1, str(sys.getrefcount(kept) != before).encode())
os._exit(0)
"""

SWEEP = """
import asyncio, gc, logging, os, socket, sys, tempfile, types, warnings
import _testcapi
import uringloop

logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")
loop = uringloop.new_event_loop()
asyncio.set_event_loop(loop)
told = []
sys.unraisablehook = lambda unraisable: told.append(repr(unraisable))
loop.set_exception_handler(lambda loop, context: told.append(context["message"]))
NEVER = 10**9

class Server(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
    def data_received(self, data):
        self.transport.write(data)
    def connection_lost(self, error):
        error and told.append(repr(error))

class Client(Server):
    def __init__(self):
        self.ended, self.size, self.wanted = loop.create_future(), 0, 100
    def connection_made(self, transport):
        self.transport = transport
        transport.write(bytes(100))
    def data_received(self, data):
        self.size += len(data)
        if self.size >= self.wanted and not self.ended.done():
            self.ended.set_result(None)
    def connection_lost(self, error):
        super().connection_lost(error)
        self.ended.done() or self.ended.set_result("lost")

async def handler(reader, writer):
    try:
        writer.write(await reader.readexactly(100))
        await writer.drain()
    finally:
        writer.close()

server = loop.run_until_complete(loop.create_server(Server, "127.0.0.1", 0)).sockets[0].getsockname()
streams = loop.run_until_complete(asyncio.start_server(handler, "127.0.0.1", 0)).sockets[0].getsockname()
path = tempfile.mkstemp()[1]

def nested(code):
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from nested(constant)

# CPython 3.12 and 3.13 drop the code of a nested function twice where there is no memory for the function (gh-122752).
functions = [each for each in gc.get_objects() if isinstance(each, types.FunctionType)]
spare_references = [code for function in functions for code in nested(function.__code__)] * int(sys.argv[2])

def make_room():
    # CPython 3.13 breaks a dict that setdefault() gets no memory to grow: so asyncio's dict of current tasks does not.
    current, others = getattr(asyncio.tasks, "_current_tasks", {}), range(200)
    current.update(dict.fromkeys(others))
    for key in others:
        del current[key]

ends = []

def fail(number):
    make_room()
    limit = 0.3 if number < NEVER else 5
    # First no allocation fails any more: _set_running_loop(None) needs memory when the loop stops.
    ends[:] = loop.call_later(limit, _testcapi.remove_mem_hooks), loop.call_later(limit, loop.stop)
    _testcapi.set_nomemory(number, number + 1)

async def connect(number):
    fail(number)
    transport, protocol = await loop.create_connection(Client, *server)
    try:
        return await protocol.ended
    finally:
        transport.close()

async def write(number, *parts):
    transport, protocol = await loop.create_connection(Client, *server)
    await protocol.ended
    protocol.ended = loop.create_future()
    protocol.wanted += sum(map(len, parts)) or 50
    fail(number)
    transport.writelines(parts or [bytes(50)])
    try:
        return await protocol.ended
    finally:
        transport.close()

async def write_much(number):
    return await write(number, bytes(300_000), *[bytes(1000)] * 300)

async def stream(number):
    fail(number)
    reader, writer = await asyncio.open_connection(*streams)
    try:
        writer.write(bytes(100))
        return None if len(await reader.read()) == 100 else "lost"
    finally:
        writer.close()

async def sock(number):
    left, right = socket.socketpair()
    with left, right:
        left.setblocking(False)
        right.setblocking(False)
        fail(number)
        receiving = asyncio.ensure_future(loop.sock_recv(right, 10))
        await asyncio.sleep(0)
        await loop.sock_sendall(left, b"abc")
        await receiving

async def file(number):
    fail(number)
    async with await uringloop.open_file(path, "rb") as opened:
        await opened.read()

async def lock(number):
    shared = uringloop.Lock()
    async def one():
        async with shared:
            await asyncio.sleep(0)
    fail(number)
    await asyncio.gather(*[asyncio.ensure_future(one()) for _ in range(3)])

async def datagram(number):
    got = loop.create_future()
    class Endpoint(asyncio.DatagramProtocol):
        def datagram_received(self, data, address):
            got.done() or got.set_result(None)
        def connection_lost(self, error):
            error and told.append(repr(error))
            got.done() or got.set_result("lost")
    transport, _ = await loop.create_datagram_endpoint(Endpoint, local_addr=("127.0.0.1", 0))
    try:
        fail(number)
        transport.sendto(b"x", transport.get_extra_info("sockname"))
        return await got
    finally:
        _testcapi.remove_mem_hooks()
        transport.close()

def run(call, number):
    told.clear()
    async def guarded():
        try:
            return await call(number)
        finally:
            _testcapi.remove_mem_hooks()
    task = loop.create_task(guarded())
    stop = lambda task: loop.stop()
    task.add_done_callback(stop)
    try:
        loop.run_forever()
    except MemoryError as error:
        told.append(repr(error))
    finally:
        _testcapi.remove_mem_hooks()
    for end in ends:
        end.cancel()
    if not task.done() and not told:  # on a busy machine, it may only be slow
        end = loop.call_later(10, loop.stop)
        loop.run_forever()
        end.cancel()
    if not task.done():
        task.remove_done_callback(stop)
        task.cancel()
        loop.call_later(0.02, loop.stop)
        loop.run_forever()
        return "hangs"
    error = None if task.cancelled() else task.exception()
    if error is None:
        return task.result()
    told.append(repr(error))
    return "fails"

call = globals()[sys.argv[1]]
run(call, NEVER), run(call, NEVER)
for number in range(int(sys.argv[2])):
    outcome, said = run(call, number), list(told)
    if outcome is not None and not said:
        print(number, outcome, "and nothing is told")
    if "Bad file descriptor" in str(said):
        print(number, "closes twice", said)
    if outcome == "hangs" and any("_start_reading" in what for what in said):
        print(number, "stays open", said)
    afterwards = run(call, NEVER)
    if afterwards is not None:
        print(number, "afterwards", afterwards, told)
os.unlink(path)
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.parametrize(
    ("call", "count"),
    [
        ("connect", 110),
        ("write", 30),
        ("write_much", 60),
        ("stream", 110),
        ("sock", 30),
        ("file", 40),
        ("datagram", 40),
        ("lock", 90),
    ],
)
def test_a_memory_error_is_reported_and_the_loop_goes_on(
    engine: str, program: Any, call: str, count: int
) -> None:
    if program(FREES_ITEMS_TWICE).stdout == "True":
        pytest.skip("this Python frees a list's items twice where memory runs out")
    assert program(SWEEP, call, str(count)).stdout == ""
