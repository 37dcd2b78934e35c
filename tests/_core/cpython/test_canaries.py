"""What the core relies on beyond CPython's documented API: checked on this Python, and each piece works without it."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from uringloop._core.cpython.canaries import PIECES, forced_plain
from uringloop._core.lifetime.counters import DEBUG_BUILD

Program = Callable[..., Any]
CERTIFICATES = Path(__file__).resolve().parents[3] / "compat" / "behaviours" / "certs"

# Prints, for each piece, whether it was seen to rely on CPython's insides.
SMOKE = """
import asyncio, contextlib, contextvars, gc, socket, ssl, sys
import uringloop
from uringloop._core.cpython.canaries import state

var = contextvars.ContextVar("var", default=0)
seen = {}

async def contexts():
    loop = asyncio.get_running_loop()
    told = []
    left, right = socket.socketpair()
    def callback(number):
        told.append((number, var.get()))
        var.set(number)
    def readable():
        left.recv(1)
        told.append(var.get())
        var.set(var.get() + 1)
    gc.collect()
    before = sum(type(one) is contextvars.Context for one in gc.get_objects())
    for number in range(100):
        loop.call_soon(callback, number)
    made = sum(type(one) is contextvars.Context for one in gc.get_objects()) - before
    seen["own_context"] = made < 50
    token = var.set(7)
    own = contextvars.copy_context()
    loop.call_soon(callback, 5, context=own)
    handle = loop.call_later(0.001, callback, 6)
    var.reset(token)
    assert handle.get_context()[var] == 7
    await asyncio.sleep(0.01)
    assert told == [(number, 0) for number in range(100)] + [(5, 7), (6, 7)], told
    assert own[var] == 5 and var.get() == 0 and handle.get_context()[var] == 6
    told.clear()
    loop.add_reader(left, readable)
    for count in range(1, 4):
        right.send(b"x")
        while len(told) < count:
            await asyncio.sleep(0)
    loop.remove_reader(left)
    assert told == [0, 1, 2]  # it runs again in what it left
    left.close()
    right.close()

async def echo(reader, writer):
    seen["adopted_streams"] = type(reader) is not asyncio.StreamReader
    assert seen["adopted_streams"] == (type(writer) is not asyncio.StreamWriter)
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
    await writer.wait_closed()

async def streams():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    for size in (1, 1000, 100000, 1000000):
        writer.write(b"a" * (size - 1) + b"\\n")
        drained = asyncio.ensure_future(writer.drain())
        assert len(await reader.readexactly(size - 1)) == size - 1
        assert await reader.readline() == b"\\n"
        await drained
    late = asyncio.ensure_future(reader.readexactly(2))
    writer.write(b"x")
    await asyncio.sleep(0.001)
    writer.write(b"yz")
    assert await late == b"xy"
    assert await reader.read(10) == b"z"
    task = asyncio.ensure_future(reader.read(10))
    await asyncio.sleep(0)
    writer.write(b"end")
    task.cancel()
    await asyncio.wait([task])
    writer.write_eof()
    assert await reader.read() == b"end"
    writer.close()
    await writer.wait_closed()
    server.close()
    await server.wait_closed()

async def sockets():
    loop = asyncio.get_running_loop()
    left, right = socket.socketpair()
    left.setblocking(False)
    right.setblocking(False)
    receiving = asyncio.ensure_future(loop.sock_recv(left, 10))
    await asyncio.sleep(0.001)
    seen["io_refs"] = type(left._io_refs) is not int
    await loop.sock_sendall(right, b"hello")
    assert await receiving == b"hello"
    receiving = asyncio.ensure_future(loop.sock_recv(left, 10))
    await asyncio.sleep(0.001)
    if seen["io_refs"]:
        left.close()
        assert await asyncio.wait_for(loop.sock_recv(right, 1), 5) == b""
    receiving.cancel()
    await asyncio.wait([receiving])
    left.close()
    assert await asyncio.wait_for(loop.sock_recv(right, 1), 5) == b""
    right.close()

async def free_lists():
    loop = asyncio.get_running_loop()
    blocks = sys.getallocatedblocks()
    for _ in range(5000):
        loop.call_soon(int)
    await asyncio.sleep(0)
    seen["free_lists"] = sys.getallocatedblocks() - blocks > 2500

async def conditions():
    condition = uringloop.Condition()
    told = []
    async def waits(number):
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(condition)
            await condition.wait()
            assert condition.locked()
            told.append(number)
    waiting = [asyncio.ensure_future(waits(number)) for number in range(3)]
    await asyncio.sleep(0.001)
    async with condition:
        condition.notify_all()
    await asyncio.gather(*waiting)
    assert told == [0, 1, 2] and not condition.locked()

async def tls():
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain("CERTIFICATES/localhost.pem", "CERTIFICATES/localhost.key")
    calling = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    calling.check_hostname, calling.verify_mode = False, ssl.CERT_NONE
    server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=serving)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2], ssl=calling)
    seen["openssl"] = type(writer.transport._ssl_protocol.records).__name__ == "DirectRecords"
    for size in (1, 1000, 100000, 1000000):
        message = bytes(range(100)) * (size // 100) + b"x"
        writer.write(message)
        drained = asyncio.ensure_future(writer.drain())
        assert await reader.readexactly(len(message)) == message
        await drained
    writer.close()
    await writer.wait_closed()
    server.close()
    await server.wait_closed()

def conditions_and_dead_loops():
    condition = uringloop.Condition()
    async def waits():
        async with condition:
            await condition.wait()
    async def begins():
        task = asyncio.ensure_future(waits())
        await asyncio.sleep(0.001)
        return [task]
    other = uringloop.new_event_loop()
    tasks = other.run_until_complete(begins())
    other.set_exception_handler(lambda loop, context: None)
    other.close()
    async def holds():
        async with condition:
            tasks.clear()
            gc.collect()
            assert condition.locked()
        assert not condition.locked()
    loop.run_until_complete(holds())
    seen["coroutine_frames"] = state()["coroutine_frames"]  # nothing of it shows

async def main():
    await free_lists()
    await conditions()
    await contexts()
    await streams()
    await sockets()
    await tls()

loop = uringloop.new_event_loop()
loop.run_until_complete(main())
conditions_and_dead_loops()
loop.close()
assert seen == state(), (seen, state())
print(seen)
""".replace("CERTIFICATES", str(CERTIFICATES))

# Changes to CPython that its own code does not notice, by the piece whose canary must.
SABOTAGE = {
    "attribute renamed": (
        "adopted_streams",
        """
from asyncio import StreamReader
StreamReader._paused = property(vars, lambda self, paused: setattr(self, "_stopped", paused))
""",
    ),
    "attribute not in the dictionary": (
        "adopted_streams",
        """
from asyncio import StreamReaderProtocol
made = StreamReaderProtocol.__init__
def init(self, *args, **more):
    made(self, *args, **more)
    del self._connection_lost
StreamReaderProtocol.__init__, StreamReaderProtocol._connection_lost = init, False
""",
    ),
    "attribute of another type": (
        "adopted_streams",
        """
from asyncio import StreamReader
class Buffer(bytearray):
    pass
made = StreamReader.__init__
def init(self, *args, **more):
    made(self, *args, **more)
    self._buffer = Buffer()
StreamReader.__init__ = init
""",
    ),
    "waiter left in its place": (
        "adopted_streams",
        """
from asyncio import StreamReader
def wakeup_waiter(self):
    if self._waiter is not None and not self._waiter.done():
        self._waiter.set_result(None)
StreamReader._wakeup_waiter = wakeup_waiter
""",
    ),
    "drain without a line": (
        "adopted_streams",
        """
from asyncio import streams
async def drain_helper(self):
    pass
streams.FlowControlMixin._drain_helper = drain_helper
""",
    ),
    "close does not ask": (
        "io_refs",
        """
import socket
def close(self):
    self._closed = True
    self._real_close()
socket.socket.close = close
""",
    ),
    "close asks otherwise": (
        "io_refs",
        """
import socket
def close(self):
    self._closed = True
    if not self._io_refs > 0:
        self._real_close()
socket.socket.close = close
""",
    ),
    "close asks too late": (
        "io_refs",
        """
import socket
def close(self):
    self._closed = True
    self._real_close()
    self._io_refs <= 0
socket.socket.close = close
""",
    ),
    "OpenSSL in the interpreter": (
        "openssl",
        """
import _ssl
del _ssl.__file__
""",
    ),
    "OpenSSL without its symbols": (
        "openssl",
        """
import _ssl, uringloop._compiled
_ssl.__file__ = uringloop._compiled.__file__
""",
    ),
    "session that raises otherwise": (
        "openssl",
        """
import ssl
class Session(ssl.SSLObject):
    def read(self, *args):
        try:
            return super().read(*args)
        except ssl.SSLWantReadError:
            raise
        except ssl.SSLError as error:
            error.reason = "SOMETHING_ELSE"
            raise
ssl.SSLContext.sslobject_class = Session
""",
    ),
}


def relied_on_here() -> dict[str, bool]:
    """What it should be on every Python that is supported."""
    gil = not sysconfig.get_config_var("Py_GIL_DISABLED")
    return {
        "own_context": gil,
        "adopted_streams": True,
        "io_refs": True,
        "coroutine_frames": True,
        "openssl": True,
        "free_lists": gil and not DEBUG_BUILD,
    }


def test_this_python_is_the_one_the_core_knows(engine: str, program: Program) -> None:
    assert eval(program(SMOKE, URINGLOOP_PLAIN="").stdout) == relied_on_here()


@pytest.mark.parametrize("piece", PIECES)
def test_the_core_works_without(engine: str, program: Program, piece: str) -> None:
    assert eval(program(SMOKE, URINGLOOP_PLAIN=piece).stdout) == {**relied_on_here(), piece: False}


def test_the_core_works_without_any_piece(engine: str, program: Program) -> None:
    assert eval(program(SMOKE, URINGLOOP_PLAIN=" , ".join(PIECES)).stdout) == dict.fromkeys(PIECES, False)


@pytest.mark.parametrize("name", SABOTAGE)
def test_on_a_python_that_differs_the_core_works_too(engine: str, program: Program, name: str) -> None:
    piece, change = SABOTAGE[name]
    assert eval(program(change + SMOKE, URINGLOOP_PLAIN="").stdout) == {**relied_on_here(), piece: False}


def test_a_piece_that_does_not_exist_is_an_error(program: Program) -> None:
    ended = program("import uringloop", URINGLOOP_PLAIN="own_context,telepathy", check=False)
    assert ended.returncode
    assert "URINGLOOP_PLAIN names no such piece: telepathy" in ended.stderr


def test_pieces_are_a_list_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("URINGLOOP_PLAIN", " io_refs, own_context,,")
    assert forced_plain() == {"io_refs", "own_context"}
