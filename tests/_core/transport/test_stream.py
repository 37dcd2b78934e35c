"""Stream transports: reading into buffers of any size, pausing anywhere, half-closed both ways, and use after the
end."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.streams import BufferedRecorder, Recorder, connect, receive, turns

pytestmark = pytest.mark.contract


@pytest.fixture
def run(loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
    return lambda main: loop.run_until_complete(asyncio.wait_for(main, 30))


@pytest.mark.parametrize("sizes", [(1,), (3, 1, 70_000), (1 << 20,), (4095, 4097)])
def test_get_buffer_may_return_buffers_of_any_size(run: Any, sizes: tuple[int, ...]) -> None:
    kind = type("Sized", (BufferedRecorder,), {"sizes": sizes})
    data = os.urandom(5_000 if min(sizes) == 1 else 300_000)

    async def main() -> None:
        protocol, peer = await connect(kind, "unix")
        with peer:
            await asyncio.get_running_loop().sock_sendall(peer, data)
            peer.shutdown(socket.SHUT_WR)
            assert await protocol.lost is None
        assert protocol.received == data
        assert protocol.calls[-2:] == ["eof", "lost"]

    run(main())


def test_get_buffer_may_return_a_memoryview_of_larger_items(run: Any) -> None:
    """What counts is bytes; and one that is a part of something larger is filled in place."""

    class Partial(BufferedRecorder):
        whole = bytearray(b"." * 20)

        def get_buffer(self, sizehint: int) -> memoryview:
            assert sizehint == -1
            return memoryview(self.whole)[8:16].cast("I")

        def buffer_updated(self, nbytes: int) -> None:
            self.data_received(bytes(self.whole[8 : 8 + nbytes]))

    async def main() -> None:
        protocol, peer = await connect(Partial)
        with peer:
            peer.send(b"0123456789ab")
            assert await protocol.until(12) == b"0123456789ab"
            assert protocol.whole[:8] == b"." * 8 and protocol.whole[16:] == b"." * 4
            protocol.transport.abort()
            await protocol.lost

    run(main())


@pytest.mark.parametrize("kind", [Recorder, BufferedRecorder])
@pytest.mark.parametrize("where", ["connection_made", "data_received", "get_buffer", "eof_received"])
def test_any_callback_may_pause_reading(run: Any, kind: Any, where: str) -> None:
    """Nothing is told until it is resumed, and nothing is lost or changes places."""
    if where == "get_buffer" and kind is Recorder:
        pytest.skip("it has none")

    class Pausing(kind):  # type: ignore[misc]
        sizes = (7,)
        pauses = 3

        def __getattribute__(self, name: str) -> Any:
            found = super().__getattribute__(name)
            if name != where or not self.pauses:
                return found

            def pausing(*arguments: Any) -> Any:
                try:
                    return found(*arguments)
                finally:
                    self.pauses -= 1
                    self.transport.pause_reading()
                    self.seen.append(len(self.calls))

            return pausing

    Pausing.seen = []
    data = os.urandom(1_000)

    async def main() -> None:
        protocol, peer = await connect(lambda: Pausing(keep_open=True))
        transport = protocol.transport
        with peer:
            peer.send(data)
            peer.shutdown(socket.SHUT_WR)
            while "eof" not in protocol.calls:
                await turns(3)
                if not transport.is_reading():
                    calls = len(protocol.calls)
                    await turns(3)
                    assert len(protocol.calls) == calls
                    transport.resume_reading()
            assert protocol.received == data and protocol.seen
            transport.abort()
            await protocol.lost
        assert protocol.calls.count("made") == protocol.calls.count("lost") == 1
        assert "data" not in protocol.calls[protocol.calls.index("eof") :]

    run(main())


def test_either_half_may_end_first(run: Any) -> None:
    async def main() -> None:
        for first in ("ours", "theirs"):
            protocol, peer = await connect(lambda: Recorder(keep_open=True))
            transport = protocol.transport
            with peer:
                if first == "ours":
                    transport.write(b"request")
                    transport.write_eof()
                    assert await receive(peer, 100) == b"request"
                    assert protocol.calls == ["made"] and not transport.is_closing()
                    peer.send(b"late")
                    assert await protocol.until(4) == b"late"
                    peer.shutdown(socket.SHUT_WR)
                    await protocol.ended.wait()
                else:
                    peer.shutdown(socket.SHUT_WR)
                    await protocol.ended.wait()
                    await turns(3)
                    assert not transport.is_closing()
                    transport.write(b"answer")
                    transport.write_eof()
                    transport.write_eof()
                    assert await receive(peer, 100) == b"answer"
                await turns(3)
                assert not transport.is_closing()  # it is for the protocol to close what has ended both ways
                transport.close()
                assert await protocol.lost is None

    run(main())


def test_writelines_copies_the_data_of_a_generator(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        with peer:
            parts = [bytearray(b"one"), bytearray(b"two")]

            def made() -> Iterator[Any]:
                yield from parts
                yield memoryview(b"three")

            protocol.transport.writelines(made())
            protocol.transport.writelines([])
            await turns(2)
            parts[0][:] = b"ONE"
            parts[1].clear()
            protocol.transport.close()
            assert await receive(peer, 100) == b"onetwothree"
            await protocol.lost

    run(main())


def test_writelines_sends_nothing_if_its_generator_raises(run: Any, engine: str) -> None:
    if engine == "asyncio" and sys.version_info >= (3, 15):
        pytest.skip("it keeps what came before, and never sends what follows")

    async def main() -> None:
        protocol, peer = await connect()
        with peer:

            def made() -> Iterator[bytes]:
                yield b"one"
                raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                protocol.transport.writelines(made())
            protocol.transport.write(b"two")
            protocol.transport.close()
            assert await receive(peer, 100) == b"two"
            await protocol.lost

    run(main())


@pytest.mark.parametrize("end", ["close", "abort"])
def test_write_after_close_or_abort_logs_a_warning_from_the_fifth_time_on(
    run: Any, caplog: pytest.LogCaptureFixture, end: str
) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        with peer, caplog.at_level(logging.WARNING, "asyncio"):
            getattr(protocol.transport, end)()
            for count in range(1, 8):
                protocol.transport.write(b"never sent")
                assert len(caplog.records) == max(count - 4, 0)
            await protocol.lost
            protocol.transport.write(b"never sent")
            assert [record.message for record in caplog.records] == ["socket.send() raised exception."] * 4
            assert await receive(peer, 100) == b""

    run(main())


async def flowing_stream() -> tuple[Any, socket.socket]:
    """A stream whose socket has taken a large write whole, and a peer with room for more."""
    left, peer = socket.socketpair()
    left.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 << 20)
    left.setblocking(False)
    peer.setblocking(False)
    _, protocol = await asyncio.get_running_loop().create_unix_connection(Recorder, sock=left)
    protocol.transport.write(bytes(70_000))
    await receive(peer, 70_000)
    assert protocol.flow == []
    return protocol, peer


@pytest.mark.engines("uring", "epoll")  # a send of the fake one may be short
def test_a_stream_without_a_backlog_gathers_the_writes_of_a_turn(loop: Any) -> None:
    """Beyond the mark, since nothing of it is a backlog; up to a bound, since all of it is memory."""

    async def main() -> None:
        protocol, peer = await flowing_stream()
        with peer:
            sizes = []
            for _ in range(10):
                protocol.transport.write(bytes(65536))
                sizes.append(protocol.transport.get_write_buffer_size())
            assert max(sizes) == 7 * 65536 and 0 in sizes and protocol.flow == []
            assert len(await receive(peer, 10 * 65536)) == 10 * 65536
            protocol.transport.close()
            await protocol.lost

    loop.run_until_complete(main())


def test_gathered_data_that_the_socket_does_not_take_pauses_the_writer(loop: Any, engine: str) -> None:
    async def main() -> None:
        protocol, peer = await flowing_stream()
        with peer:
            sent = bytearray()
            while not protocol.flow:
                for letter in b"abcd":  # 256 KB: less than is gathered, more than the mark
                    sent += bytes([letter]) * 65536
                    protocol.transport.write(bytes([letter]) * 65536)
                await turns()
                transport = protocol.transport
                while engine == "fake" and not protocol.flow and transport.get_write_buffer_size() > 65536:
                    await turns(1)  # it may report the send turns later
                assert protocol.flow or transport.get_write_buffer_size() <= 65536
            assert protocol.flow == ["pause"]
            size = len(sent)
            protocol.transport.write(b"the last")
            assert await receive(peer, size + 8) == bytes(sent) + b"the last"
            await protocol.when(lambda: "resume" in protocol.flow)
            protocol.transport.close()
            await protocol.lost

    loop.run_until_complete(asyncio.wait_for(main(), 30))


@pytest.mark.engines("uring", "epoll")
def test_a_lower_high_water_mark_gathers_less_data(loop: Any) -> None:
    async def main() -> None:
        protocol, peer = await flowing_stream()
        with peer:
            protocol.transport.set_write_buffer_limits(high=0)
            for _ in range(5):
                protocol.transport.write(b"x" * 1000)
                assert protocol.transport.get_write_buffer_size() == 0
            protocol.transport.set_write_buffer_limits(high=1000)
            for _ in range(20):
                protocol.transport.write(b"x" * 1000)
                assert protocol.transport.get_write_buffer_size() < 8000
            protocol.transport.abort()
            await protocol.lost

    loop.run_until_complete(main())


@pytest.mark.parametrize(
    ("family", "proto", "expected"),
    [
        (socket.AF_INET, socket.IPPROTO_TCP, True),
        (socket.AF_INET, 0, False),
        (socket.AF_INET6, socket.IPPROTO_TCP, True),
    ],
)
@pytest.mark.parametrize("subclass", [False, True])
def test_only_a_socket_that_names_tcp_sends_without_delay(
    run: Any, family: socket.AddressFamily, proto: int, expected: bool, subclass: bool
) -> None:
    class Other(socket.socket):
        pass

    async def main() -> None:
        address = "127.0.0.1" if family == socket.AF_INET else "::1"
        with socket.create_server((address, 0), family=family) as listener:
            sock = (Other if subclass else socket.socket)(family, socket.SOCK_STREAM, proto)
            sock.connect(listener.getsockname())
            transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=sock)
            found = transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert bool(found) is expected
            transport.close()
            await turns(2)

    run(main())


@pytest.mark.engines("uring", "epoll", "fake")
def test_connecting_looks_up_no_enum_members(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a free-threaded Python, loops in several threads would wait for each other there."""

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = listener.getsockname()
            asked: list[str] = []
            for name in ("family", "type"):
                monkeypatch.setattr(socket.socket, name, property(lambda _, name=name: asked.append(name)))
            transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, *address)
            monkeypatch.undo()
            transport.close()
            await turns(2)
            assert asked == []

    run(main())
