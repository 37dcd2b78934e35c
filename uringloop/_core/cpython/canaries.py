"""Canaries: check that the running CPython behaves as the core knows it, beyond the documented API.

Each piece of the core that relies on undocumented behaviour calls `relied_on` once, when it is imported. If CPython
behaves differently, the piece takes its plain path: the same result by documented means, or asyncio's own code.
URINGLOOP_PLAIN=name,name in the environment forces the plain path of any piece, so that tests can run it on any Python.
"""

from __future__ import annotations

import os
import socket
import sys
import weakref
from asyncio import futures, streams, tasks
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

# The behaviour that each piece relies on, and its plain path.
PIECES = {
    "own_context": "A contextvars.Context has the fields that it has had since 3.7, a thread's state refers to the"
    " current one, and there is a GIL. Plain: each handle copies its context at once.",
    "adopted_streams": "asyncio's StreamReader, StreamWriter and StreamReaderProtocol keep their state in the"
    " attributes that the core reads and sets, and an instance can be given another class. Plain: asyncio's methods.",
    "io_refs": "socket.close() compares `_io_refs <= 0` once, just before it closes the descriptor. Plain: an"
    " operation that waits for a socket keeps the file open until it ends, and does not notice the close.",
    "coroutine_frames": "A running coroutine holds the link to the exception that it handles, a suspended one a"
    " reference to its frame, and all functions of a module share the name of its file. Plain: a condition's lock knows"
    " its tasks only by their loop and the GeneratorExit, so a task that catches that may release another's lock.",
    "openssl": "A session of `_ssl` holds OpenSSL's SSL between its socket and its context, uses its BIOs only through"
    " that, and raises the error that it finds in OpenSSL's queue. Plain: CPython's ssl objects move all data.",
    "free_lists": "A compiled class is a static type whose objects are one block of memory of a fixed size, in which"
    " PyObject_Init makes a new object. Plain: the allocator makes each object.",
}

_state: dict[str, bool] = {}


def forced_plain() -> set[str]:
    """The names in URINGLOOP_PLAIN. Raises ValueError for a name that is not a piece."""
    names = {name.strip() for name in os.environ.get("URINGLOOP_PLAIN", "").split(",") if name.strip()}
    unknown = names.difference(PIECES)
    if unknown:
        raise ValueError(
            f"URINGLOOP_PLAIN names no such piece: {', '.join(sorted(unknown))}; there are {', '.join(PIECES)}"
        )
    return names


_plain = forced_plain()


def relied_on(piece: str, as_known: bool) -> bool:
    """Whether the piece may rely on CPython; `as_known` is its canary's result."""
    found = as_known and piece not in _plain
    _state[piece] = _state.get(piece, True) and found  # free lists call this once for each class
    return found


def state() -> dict[str, bool]:
    """Whether each piece relies on CPython. False: it takes its plain path, or this build doesn't have the piece."""
    return {piece: _state.get(piece, False) for piece in PIECES}


class _Loop:
    """The methods of a loop that the constructors of streams call."""

    def get_debug(self) -> bool:
        return False

    def is_closed(self) -> bool:
        return False

    def create_future(self) -> futures.Future[Any]:
        return futures.Future(loop=self)  # type: ignore[arg-type]


class _Transport:
    def __init__(self) -> None:
        self.told: list[object] = []

    def pause_reading(self) -> None:
        self.told.append("pause")

    def resume_reading(self) -> None:
        self.told.append("resume")

    def write(self, data: bytes) -> None:
        self.told.append(data)

    def is_closing(self) -> bool:
        return True

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default


def _ends(coroutine: Any) -> bool:
    try:
        coroutine.send(None)
    except StopIteration:
        return True
    return False


def stock_reader() -> Any:
    return streams.StreamReader(limit=1, loop=_Loop())  # type: ignore[arg-type]


def _reader_is_as_known() -> bool:
    reader, transport, error = stock_reader(), _Transport(), OSError()
    attributes = vars(reader)
    fresh = {
        "_limit": 1,
        "_eof": False,
        "_paused": False,
        "_waiter": None,
        "_exception": None,
        "_transport": None,
    }
    known = attributes.items() >= fresh.items() and attributes["_loop"] is reader._loop
    known = known and type(attributes["_buffer"]) is bytearray
    reader.set_transport(transport)
    waiting = reader._wait_for_data("read")
    waiter = waiting.send(None)
    known = known and waiter is attributes["_waiter"] and attributes["_transport"] is transport
    reader.feed_data(b"abc")  # more than twice the limit
    known = known and attributes["_buffer"] == b"abc" and attributes["_waiter"] is None and waiter.done()
    known = known and attributes["_paused"] and _ends(waiting)
    attributes["_buffer"].clear()
    reader._maybe_resume_transport()
    known = known and not attributes["_paused"] and transport.told == ["pause", "resume"]
    attributes["_waiter"] = waiter = reader._loop.create_future()
    reader._wakeup_waiter()
    known = known and attributes["_waiter"] is None and waiter.done()
    reader.feed_eof()
    reader.set_exception(error)
    return known and attributes["_eof"] and attributes["_exception"] is reader.exception() is error


def _writer_is_as_known() -> bool:
    reader, transport, made = stock_reader(), _Transport(), list[Any]()
    connected = lambda *both: made.extend(both)  # noqa: E731
    protocol: Any = streams.StreamReaderProtocol(reader, connected, loop=reader._loop)
    attributes = vars(protocol)
    fresh = {"_paused": False, "_connection_lost": False, "_client_connected_cb": connected}
    known = attributes.items() >= fresh.items() and protocol._stream_reader is reader
    known = known and attributes["_stream_reader_wr"] == weakref.ref(reader)
    protocol.connection_made(transport)
    _, writer = made
    parts = {"_transport": transport, "_protocol": protocol, "_reader": reader}
    known = known and type(writer) is streams.StreamWriter and vars(writer).items() >= parts.items()
    writer.write(b"abc")
    protocol.pause_writing()
    draining = protocol._drain_helper()
    waiter = draining.send(None)
    known = known and transport.told == [b"abc"] and attributes["_paused"]
    known = known and list(protocol._drain_waiters) == [waiter]
    protocol.resume_writing()
    known = known and not attributes["_paused"] and waiter.done() and _ends(draining)
    known = known and not protocol._drain_waiters
    set_result: Any = futures._set_result_unless_cancelled  # type: ignore[attr-defined]
    set_result(waiter := reader._loop.create_future(), 5)
    protocol.connection_lost(None)
    return known and waiter.result() == 5 and attributes["_connection_lost"]


def streams_are_as_known() -> bool:
    """Whether asyncio's streams keep their state in the attributes that the core uses."""
    try:
        return _reader_is_as_known() and _writer_is_as_known()
    except Exception:
        return False


def sockets_are_as_known() -> bool:
    """Whether a socket compares its `_io_refs` before it closes its descriptor. Checked on one without a descriptor."""
    order: list[str] = []

    class Refs:
        def __init__(self, none_left: bool) -> None:
            self.none_left = none_left

        def __le__(self, count: int) -> bool:
            order.append(f"asked for {count}")
            return self.none_left

    class Socket(socket.socket):
        __slots__ = ()

        def _real_close(self) -> None:
            order.append("closes")

    sock: Any = Socket.__new__(Socket)
    try:
        sock._io_refs = Refs(False)
        sock.close()
        sock._io_refs = Refs(True)
        sock.close()
    except Exception:
        return False
    return order == ["asked for 0", "asked for 0", "closes"]


class _Pause:
    def __await__(self) -> Any:
        yield


def coroutine_frames_are_as_known(own_frame: Callable[[], Any], is_exiting: Callable[[Any], bool]) -> bool:
    """Whether `own_frame` finds a coroutine by its frame, and `is_exiting` sees that it is being destroyed."""
    seen: list[bool] = []

    async def suspended() -> None:
        seen.extend((own_frame() is made.cr_frame, is_exiting(made)))
        try:
            await _Pause()
        finally:
            seen.extend((own_frame() is made.cr_frame, is_exiting(made)))

    made: Any = suspended()
    try:
        made.send(None)
        # In a list: from 3.14 on, some calls borrow the reference of a variable, and others don't.
        frame: list[Any] = [made.cr_frame]
        references = sys.getrefcount(frame[0])
        made.close()
    except Exception:
        return False
    stack: Any = AsyncExitStack
    return (
        seen == [True, False, True, True]
        and sys.getrefcount(frame[0]) == references - 1
        and tasks.wait_for.__code__.co_filename is tasks.sleep.__code__.co_filename
        and stack.enter_async_context.__code__.co_filename is stack.__aexit__.__code__.co_filename
    )


def sessions_are_as_known(begin: Callable[[Any], Any], fail: Callable[[Any, bytes], None]) -> bool:
    """Whether CPython's methods use the BIOs that `begin` gives a session, and raise what went wrong in `fail`, where
    OpenSSL was called."""
    import ssl  # most programs never need it

    def error_of(call: Callable[..., Any], *args: Any) -> Any:
        try:
            call(*args)
        except ssl.SSLError as error:
            return type(error), error.args, error.library, error.reason
        return None

    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        stock = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        wants = error_of(stock.do_handshake)
        known, hello = begin(context)
        stock_hello = outgoing.read()
        incoming.write(b"this is no record")
        stock_error, error = error_of(stock.read, 16), error_of(fail, known, b"this is no record")
    except Exception:
        return False
    return (
        wants[0] is ssl.SSLWantReadError
        and len(hello) == len(stock_hello)
        and hello[:3] == stock_hello[:3]
        and error == stock_error is not None
        and error[0] is ssl.SSLError
    )
