"""What is freed, replaced or kept by code of the program's own while compiled code is still at work with it."""

from __future__ import annotations

import asyncio
import gc
import ssl
import subprocess
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from tests.streams import pair
from tests.tls.peers import client_context, server_context
from uringloop.files import FixedBuffers

Program = Callable[..., subprocess.CompletedProcess[str]]


# Timers


def count_of_timers(loop: Any) -> int:
    count: int = loop._counts()["timers"]
    return count


def test_a_destructor_in_a_timers_callback_cancels_other_timers(loop: Any) -> None:
    """So many that all cancelled ones are swept: the one that is being cancelled counts once."""
    others = [loop.call_later(1000 + number * 0.001, print) for number in range(200)]

    class Owner:
        def __call__(self) -> None: ...

        def __del__(self) -> None:
            for other in others:
                other.cancel()

    last = [loop.call_later(5000 - number, print) for number in range(3)]
    handle = loop.call_later(2000, Owner())
    loop.call_later(3000, print)
    handle.cancel()
    assert count_of_timers(loop) == 4
    for each in last:
        each.cancel()
    assert count_of_timers(loop) == 1


def test_a_destructor_in_a_timers_callback_closes_the_loop(engine: str, program: Program) -> None:
    program(
        """
import gc, uringloop

box = [uringloop.new_event_loop()]
others = [box[0].call_later(1000 + number * 0.001, print) for number in range(200)]

class Owner:
    def __call__(self):
        pass

    def __del__(self):
        for other in others:
            other.cancel()
        others.clear()
        box.pop().close()
        gc.collect()

handle = box[0].call_later(2000, Owner())
box[0].call_later(3000, print)
handle.cancel()
""",
        PYTHONMALLOC="debug",
    )


@pytest.mark.contract
def test_a_destructor_can_cancel_the_timer_that_is_being_cancelled(loop: Any) -> None:
    handles: list[Any] = []
    cancelled = []

    class Owner:
        def __call__(self) -> None: ...

        def __del__(self) -> None:
            handles[0].cancel()
            cancelled.append(handles[0].cancelled())

    handles.append(loop.call_later(1000, Owner()))
    handles[0].cancel()
    gc.collect()
    assert cancelled == [True]


# Datagrams


@pytest.mark.engines("uring")
def test_an_endpoint_is_freed_by_its_poll_while_the_loop_closes(engine: str, program: Program) -> None:
    """Its polls are armed by another thread than ends them, so that connection_lost comes before they are cancelled."""
    program(
        """
import asyncio, threading, uringloop

def once(turns):
    loop = uringloop.new_event_loop()

    async def make():
        made = [loop.create_datagram_endpoint(asyncio.DatagramProtocol, ("127.0.0.1", 0)) for _ in range(5)]
        made = [(await each)[0] for each in made]
        await asyncio.sleep(0.001)
        return made

    async def end(endpoints):
        while endpoints:
            endpoints.pop().abort()
        for _ in range(turns):
            await asyncio.sleep(0)

    endpoints = loop.run_until_complete(make())
    thread = threading.Thread(target=lambda: loop.run_until_complete(end(endpoints)))
    thread.start()
    sum(range(20000))  # this thread, which armed the polls, is at work in user space
    thread.join()
    loop.close()

for number in range(100):
    once(number % 4)
""",
        PYTHONMALLOC="debug",
        URINGLOOP_DISABLE="single_issuer",
    )


# TLS


class Tracing(ssl.SSLObject):
    """Keeps what it is given, as a tracer does."""

    written: ClassVar[list[memoryview]]
    read_into: ClassVar[list[memoryview]]

    def write(self, data: Any) -> int:
        self.written.append(memoryview(data))
        return super().write(data)

    def read(self, length: int = 1024, buffer: Any = None) -> Any:
        if buffer is not None:
            self.read_into.append(memoryview(buffer))
        return super().read(length, buffer) if buffer is not None else super().read(length)


@pytest.mark.contract
def test_a_custom_ssl_object_may_keep_the_buffers_that_it_is_given(
    loop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tracing, "written", [], raising=False)
    monkeypatch.setattr(Tracing, "read_into", [], raising=False)
    sent = b"".join(bytes([number]) * 3000 for number in range(50))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 20):
            writer.write(data)
        writer.close()

    async def main() -> None:
        contexts = server_context(), client_context()
        for context in contexts:
            context.sslobject_class = Tracing
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=contexts[0])
        host, port = server.sockets[0].getsockname()
        reader, writer = await asyncio.open_connection(
            host, port, ssl=contexts[1], server_hostname="localhost"
        )
        for number in range(50):
            writer.write(sent[number * 3000 :][:3000])
            await writer.drain()
        assert await reader.readexactly(len(sent)) == sent
        writer.close()
        await writer.wait_closed()
        server.close()

    loop.run_until_complete(asyncio.wait_for(main(), 30))
    junk = [bytes([255]) * size for size in range(2000, 4000)]
    written = b"".join(bytes(view) for view in Tracing.written)
    del junk
    assert written == sent * 2
    for view in Tracing.read_into:
        view[:] = bytes(len(view))  # into memory that is somebody's
    Tracing.written.clear()
    Tracing.read_into.clear()


# Streams


async def stream(loop: Any, reader: asyncio.StreamReader) -> tuple[Any, Any, Any]:
    """Its transport, its protocol, and the socket at the other end."""
    near, far = pair()
    transport, protocol = await loop.create_connection(
        lambda: asyncio.StreamReaderProtocol(reader), sock=near
    )
    return transport, protocol, far


class Kept(bytearray):
    """A program's own buffer, which sees what is put into it."""

    extended = 0

    def extend(self, data: Any) -> None:
        self.extended += len(data)
        super().extend(data)


@pytest.mark.contract
def test_data_is_added_to_a_stream_reader_buffer_set_by_the_program(loop: Any) -> None:
    async def main() -> None:
        reader = asyncio.StreamReader()
        transport, _, peer = await stream(loop, reader)
        peer.sendall(b"one ")
        while not reader._buffer:  # type: ignore[attr-defined]
            await asyncio.sleep(0)
        own = Kept(reader._buffer)  # type: ignore[attr-defined]
        reader._buffer = own  # type: ignore[attr-defined]
        peer.sendall(b"two three")
        while own.extended < 9:
            await asyncio.sleep(0)
        assert await reader.readexactly(4) == b"one "
        assert await reader.read(4) == b"two "
        assert await reader.read(100) == b"three"
        waiting = asyncio.ensure_future(reader.readexactly(4))
        await asyncio.sleep(0)
        peer.sendall(b"four")
        assert await waiting == b"four"
        transport.close()
        peer.close()

    loop.run_until_complete(asyncio.wait_for(main(), 30))


@pytest.mark.contract
@pytest.mark.parametrize("kind", [bytes, type(None)])
def test_an_invalid_buffer_of_a_stream_reader_ends_the_connection(loop: Any, kind: type) -> None:
    """The connection ends with the error; nothing is read or written where no buffer is."""

    async def main() -> None:
        reports: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _, context: reports.append(context))
        reader = asyncio.StreamReader()
        transport, _, peer = await stream(loop, reader)
        before = reader._buffer  # type: ignore[attr-defined]
        reader._buffer = kind()  # type: ignore[attr-defined]
        peer.sendall(b"data")
        while not reports:
            await asyncio.sleep(0)
        assert isinstance(reports[0]["exception"], AttributeError)
        reader._buffer = before  # type: ignore[attr-defined]
        transport.abort()
        peer.close()
        await asyncio.sleep(0)

    loop.run_until_complete(asyncio.wait_for(main(), 30))


class Counting(asyncio.StreamReader):
    fed = 0

    def feed_data(self, data: bytes) -> None:
        self.fed += len(data)
        super().feed_data(data)


@pytest.mark.contract
def test_a_stream_protocol_feeds_a_reader_that_replaced_its_first_one(loop: Any) -> None:
    """As `StreamReaderProtocol._replace_reader` does: its own methods are called."""

    async def main() -> None:
        reader, other = asyncio.StreamReader(), Counting()
        transport, protocol, peer = await stream(loop, reader)
        protocol._stream_reader_wr = weakref.ref(other)
        peer.sendall(b"data")
        assert await other.readexactly(4) == b"data"
        assert other.fed == 4
        transport.close()
        peer.close()

    loop.run_until_complete(asyncio.wait_for(main(), 30))


# Exceptions


def test_a_refusal_keeps_no_local_variables_alive(loop: Any) -> None:
    class Local: ...

    seen: list[weakref.ref[Local]] = []

    def ask(buffers: Any) -> None:
        local = Local()
        seen.append(weakref.ref(local))
        with pytest.raises(RuntimeError, match="the buffers are closed"):
            buffers.lend_nowait()

    async def wait(buffers: Any) -> BaseException | None:
        with pytest.raises(RuntimeError, match="the buffers are closed") as caught:
            await buffers.lend()
        return caught.value

    async def main() -> None:
        buffers = FixedBuffers(1, 4096)
        view = buffers.lend_nowait()
        waiting = [asyncio.ensure_future(wait(buffers)) for _ in range(3)]
        await asyncio.sleep(0)
        buffers.close()
        errors = await asyncio.gather(*waiting)
        assert len(set(map(id, errors))) == 3
        for _ in range(10):
            ask(buffers)
        view.release()

    loop.run_until_complete(main())
    gc.collect()
    assert [each() for each in seen] == [None] * 10


# Sockets


def test_sockets_can_be_closed_while_another_thread_begins_to_run_their_loop(
    engine: str, program: Program
) -> None:
    """Without the GIL at the same moment."""
    program(
        """
import asyncio, errno, socket, threading, uringloop

def once():
    loop = uringloop.new_event_loop()
    pairs = [socket.socketpair() for _ in range(50)]
    started = threading.Barrier(2)

    async def receive():
        for near, _ in pairs:
            near.setblocking(False)
        tasks = [asyncio.ensure_future(loop.sock_recv(near, 1)) for near, _ in pairs]
        await asyncio.sleep(0)
        return tasks

    async def cancel():
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def run():
        started.wait()
        for _ in range(20):
            loop.run_until_complete(asyncio.sleep(0))

    tasks = loop.run_until_complete(receive())
    thread = threading.Thread(target=run)
    thread.start()
    started.wait()
    for near, _ in pairs:
        near.close()
    thread.join()
    loop.run_until_complete(cancel())
    for task in tasks:  # still waiting until now; or the other thread's ring has met the closed descriptor
        assert task.cancelled() or task.exception().errno == errno.EBADF
    loop.close()
    for _, far in pairs:
        far.close()

for _ in range(50):
    once()
""",
    )
