"""Defects reported against other loops: what a protocol does, or raises, within one of its callbacks."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import Callable
from typing import Any

import pytest

from tests.streams import BufferedRecorder, Recorder, connect, pair, settled
from tests.tls import peers

RunMain = Callable[[Any], Any]


@pytest.fixture
def run(loop: asyncio.AbstractEventLoop) -> RunMain:
    return lambda main: loop.run_until_complete(asyncio.wait_for(main, 30))


@pytest.fixture
def reports(loop: Any) -> list[dict[str, Any]]:
    """What the loop's exception handler is told."""
    found: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: found.append(context))
    return found


ACTIONS: dict[str, Callable[[Any], object]] = {
    "pause": lambda transport: transport.pause_reading(),
    "resume": lambda transport: transport.resume_reading(),
    "pause and resume": lambda transport: (transport.pause_reading(), transport.resume_reading()),
    "close": lambda transport: transport.close(),
    "abort": lambda transport: transport.abort(),
    "close and abort": lambda transport: (transport.close(), transport.abort()),
    "write": lambda transport: transport.write(b"w" * 1000),
    "write and close": lambda transport: (transport.write(b"w" * 1000), transport.close()),
    "write much": lambda transport: transport.write(bytes(500_000)),
    "write_eof": lambda transport: transport.can_write_eof() and transport.write_eof(),
    "replace": lambda transport: transport.set_protocol(transport.get_protocol()),
    "limits": lambda transport: transport.set_write_buffer_limits(high=0),
}
CALLBACKS = (
    "connection_made get_buffer buffer_updated data_received eof_received pause_writing resume_writing connection_lost"
).split()


def acting(callback: str, action: Callable[[Any], object]) -> Any:
    """A protocol that does it twice when it is first called so."""
    kind: Any = BufferedRecorder if "buffer" in callback else Recorder
    first = [True]

    def method(self: Any, *args: Any) -> Any:
        if not first:
            return getattr(kind, callback)(self, *args)
        first.clear()
        result = getattr(kind, callback)(self, *args)
        action(self.transport)
        action(self.transport)
        return memoryview(result) if callback == "get_buffer" else result

    return type("Acting", (kind,), {callback: method})


async def exchange(protocol: Any, sock: socket.socket) -> None:
    """Some data and the end have arrived from the other end, and it has read all it is sent."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(RuntimeError):  # if it has written its end
        protocol.transport.write(bytes(1_000_000))
    reading = asyncio.ensure_future(read_all(sock))
    while protocol.transport.get_write_buffer_size() and not protocol.lost.done():
        await asyncio.sleep(0)
    protocol.transport.resume_reading()
    await settled(None)
    protocol.transport.abort()
    await protocol.lost
    await reading
    sock.close()
    assert loop is protocol.lost.get_loop()


async def read_all(sock: socket.socket) -> None:
    with contextlib.suppress(ConnectionError):
        while await asyncio.get_running_loop().sock_recv(sock, 1 << 18):
            pass


def assert_told_in_order(protocol: Any) -> None:
    assert protocol.calls[0] == "made" and protocol.calls.count("made") == 1
    assert protocol.calls[-1] == "lost" and protocol.calls.count("lost") == 1
    assert protocol.calls.count("eof") <= 1
    assert all(told == ("pause", "resume")[number % 2] for number, told in enumerate(protocol.flow))


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("callback", CALLBACKS)
def test_any_callback_may_call_any_method_of_its_transport(
    run: RunMain, reports: list[Any], callback: str, action: str
) -> None:
    """zuvloop #110, uvloop #706 #538 #760: crashes where a callback paused or closed its own transport."""

    async def main() -> Any:
        protocol, sock = await connect(acting(callback, ACTIONS[action]), "unix")
        with contextlib.suppress(ConnectionError):
            await asyncio.get_running_loop().sock_sendall(sock, b"x" * 1000)
        sock.shutdown(socket.SHUT_WR)
        await exchange(protocol, sock)
        return protocol

    assert_told_in_order(run(main()))
    assert reports == []


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("callback", CALLBACKS)
def test_any_callback_may_call_any_method_of_its_tls_transport(
    run: RunMain, reports: list[Any], callback: str, action: str
) -> None:
    """The same where the transport is a layer on another, and what is done may end the handshake."""
    made: list[Any] = []

    def factory() -> Any:
        made.append(acting(callback, ACTIONS[action])())
        return made[-1]

    async def main() -> Any:
        left, right = pair("unix")
        peer = peers.peer_of(right, "client")
        making = asyncio.ensure_future(peers.begin(factory, left, "client"))
        with contextlib.suppress(EOFError, ConnectionError, ssl.SSLError):
            await peer.handshake()
            await peer.send(b"x" * 1000)
            await peer.say_goodbye()
        with contextlib.suppress(ConnectionError):
            await making
        await exchange(made[0], right)
        return made[0]

    assert_told_in_order(run(main()))
    assert reports == []


class Interrupting(Recorder):
    """Raises KeyboardInterrupt in one callback, once."""

    where = ""

    def interrupt(self, where: str) -> None:
        if self.where == where:
            self.where = ""
            raise KeyboardInterrupt

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.interrupt("connection_made")

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.interrupt("data_received")

    def eof_received(self) -> bool:
        super().eof_received()
        self.interrupt("eof_received")
        return True

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self.interrupt("connection_lost")


class BufferedInterrupting(Interrupting, BufferedRecorder):
    def get_buffer(self, sizehint: int) -> bytearray | memoryview:
        buffer = super().get_buffer(sizehint)
        self.interrupt("get_buffer")
        return buffer


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        (Interrupting, "data_received"),
        (Interrupting, "eof_received"),
        (Interrupting, "connection_lost"),
        (BufferedInterrupting, "get_buffer"),
        (BufferedInterrupting, "data_received"),
        (BufferedInterrupting, "eof_received"),
    ],
)
def test_keyboard_interrupt_in_a_callback_leaves_the_loop_and_loses_no_data(
    loop: Any, reports: list[Any], kind: Any, where: str
) -> None:
    """uvloop, rloop: it was swallowed, so Ctrl-C did nothing while data flowed."""

    async def begin() -> Any:
        protocol, sock = await connect(kind, "unix")
        protocol.where = where
        return protocol, sock

    async def end() -> None:
        await protocol.until(6)
        await protocol.ended.wait()
        protocol.transport.close()
        assert await protocol.lost is None

    protocol, sock = loop.run_until_complete(begin())
    sock.send(b"first ")
    sock.shutdown(socket.SHUT_WR)
    if where == "connection_lost":
        loop.run_until_complete(protocol.ended.wait())
        protocol.transport.close()
    with pytest.raises(KeyboardInterrupt):
        loop.run_forever()
    assert protocol.where == "" and reports == []
    loop.run_until_complete(asyncio.wait_for(end(), 30))
    assert protocol.received == b"first "
    sock.close()


def test_keyboard_interrupt_in_datagram_received_leaves_the_loop(loop: Any) -> None:
    """And the endpoint goes on, with what had arrived together with that one."""

    class Taking(asyncio.DatagramProtocol):
        def __init__(self) -> None:
            self.lost = loop.create_future()

        def datagram_received(self, data: bytes, addr: Any) -> None:
            received.append(data)
            raise KeyboardInterrupt

        def connection_lost(self, error: Exception | None) -> None:
            self.lost.set_result(error)

    received: list[bytes] = []
    transport, protocol = loop.run_until_complete(
        loop.create_datagram_endpoint(Taking, local_addr=("127.0.0.1", 0))
    )
    for data in (b"one", b"two", b"three"):
        transport.sendto(data, transport.get_extra_info("sockname"))
    for data in (b"one", b"two", b"three"):
        with pytest.raises(KeyboardInterrupt):
            loop.run_forever()
        assert received.pop() == data and not received
    transport.close()
    assert loop.run_until_complete(protocol.lost) is None


@pytest.mark.contract
def test_two_errors_of_queued_datagrams_are_both_reported(run: RunMain, tmp_path: Any) -> None:
    """uvloop and zuvloop told of the first only where error_received closes the transport."""

    class Closing(asyncio.DatagramProtocol):
        def __init__(self) -> None:
            self.lost = asyncio.get_running_loop().create_future()

        def connection_made(self, transport: Any) -> None:
            self.transport = transport

        def error_received(self, error: Any) -> None:
            told.append(error.errno)
            self.transport.close()

        def connection_lost(self, error: Exception | None) -> None:
            self.lost.set_result(error)

    told: list[int | None] = []

    async def main() -> None:
        there = str(tmp_path / "there")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as peer:
            peer.bind(there)
            transport, protocol = await asyncio.get_running_loop().create_datagram_endpoint(
                Closing, family=socket.AF_UNIX, remote_addr=there
            )
            while not transport.get_write_buffer_size():
                transport.sendto(b"fills its queue")
            transport.sendto(b"the second")
        assert await protocol.lost is None

    run(main())
    assert told == [errno.ECONNREFUSED, errno.ENOTCONN]


@pytest.mark.contract
def test_drain_after_the_connection_was_lost_raises(run: RunMain) -> None:
    """zuvloop: nothing was raised, so a program wrote to nobody for ever."""

    async def main() -> None:
        left, right = pair("unix")
        _, writer = await asyncio.open_unix_connection(sock=left)
        writer.close()
        await writer.wait_closed()
        with pytest.raises(ConnectionResetError, match="Connection lost"):
            await writer.drain()
        right.close()

    run(main())
