"""What is written: all of it, in order, and no faster than the peer reads."""

from __future__ import annotations

import asyncio
import os
import ssl
from typing import Any

import pytest

from tests.streams import Recorder
from tests.tls.peers import APPLICATION_DATA, connect, fill, leave, records

SIZES = [1, 1000, 16384, 16385, 100_000, 1_000_000]


@pytest.mark.contract
def test_messages_of_many_sizes_arrive_in_both_directions(run: Any, side: str) -> None:
    async def main() -> None:
        protocol, peer = await connect(side=side)
        for size in SIZES:
            message = os.urandom(size)
            protocol.received.clear()
            sending = asyncio.ensure_future(peer.send(message))
            assert await protocol.until(size) == message
            await sending
            protocol.transport.write(message)
            assert await peer.receive(size) == message
        await leave(protocol, peer)

    run(main())


@pytest.mark.contract
def test_writes_arrive_in_order(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        expected = bytearray()
        for size in [1, 0, 70_000, 3, 200_000, 5, 16384, 1, 1, 300_000, 2]:
            piece = os.urandom(size)
            protocol.transport.write(piece)
            expected += piece
        protocol.transport.writelines([b"one ", bytearray(b"two "), memoryview(b"three")])
        expected += b"one two three"
        protocol.transport.writelines([])
        assert await peer.receive(len(expected)) == expected
        await leave(protocol, peer)

    run(main())


def test_writes_of_one_turn_leave_in_one_record(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        await peer.send(b"the server's tickets are sent")
        await protocol.until(29)
        for _ in range(100):
            protocol.transport.write(b"x" * 10)
        got = b""
        while len(got) < 1000 + 5:
            got += await peer.arrival()
        assert records(got) == [APPLICATION_DATA]
        peer.incoming.write(got)
        assert peer.tls.read(2000) == b"x" * 1000
        await leave(protocol, peer)

    run(main())


@pytest.mark.engines("uring", "epoll")  # the fake one keeps it back
def test_data_written_before_the_loop_stops_is_sent(loop: Any, run: Any) -> None:
    protocol, peer = run(connect())

    def write_and_stop() -> None:
        protocol.transport.write(b"last words")
        loop.stop()

    loop.call_soon(write_and_stop)
    loop.run_forever()
    peer.sock.setblocking(True)
    peer.sock.settimeout(10)
    peer.incoming.write(peer.sock.recv(5))
    while True:
        try:
            assert peer.tls.read(100) == b"last words"
            break
        except ssl.SSLWantReadError:
            peer.incoming.write(peer.sock.recv(4096))
    run(leave(protocol, peer))


@pytest.mark.contract
def test_a_program_may_change_its_data_right_after_write(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        for size in [10, 100_000]:
            data = bytearray(b"a" * size)
            protocol.transport.write(data)
            data[:] = b"b" * size
            assert await peer.receive(size) == b"a" * size
        await leave(protocol, peer)

    run(main())


def test_write_accepts_memoryviews_of_any_layout(run: Any) -> None:
    """asyncio ends the connection where one is not contiguous."""

    async def main() -> None:
        protocol, peer = await connect()
        protocol.transport.write(memoryview(b"0123456789")[::2])
        protocol.transport.writelines([b"a", memoryview(b"bcdef")[::-2]])
        assert await peer.receive(9) == b"02468afdb"
        await leave(protocol, peer)

    run(main())


@pytest.mark.contract
@pytest.mark.parametrize("wrong", ["text", None, 5])
def test_write_refuses_objects_that_are_not_buffers(run: Any, wrong: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        with pytest.raises(TypeError, match=f"expecting a bytes-like instance, got {type(wrong).__name__}"):
            protocol.transport.write(wrong)
        protocol.transport.write(b"unharmed")
        assert await peer.receive(8) == b"unharmed"
        await leave(protocol, peer)

    run(main())


@pytest.mark.contract
def test_a_full_buffer_pauses_the_writer_until_the_peer_reads(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect(family="unix")
        written = await fill(protocol, peer)
        assert protocol.flow == ["pause"]
        assert protocol.transport.get_write_buffer_size() >= protocol.transport.get_write_buffer_limits()[1]
        receiving = asyncio.ensure_future(peer.receive(written))
        await protocol.when(lambda: len(protocol.flow) == 2)
        assert protocol.flow == ["pause", "resume"]
        assert len(await receiving) == written
        assert protocol.transport.get_write_buffer_size() == 0
        await leave(protocol, peer)

    run(main())


@pytest.mark.contract
def test_drain_waits_for_a_peer_that_does_not_read(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect(StreamRecorder, family="unix")
        written = 0
        while True:
            protocol.writer.write(bytes(1_000_000))
            written += 1_000_000
            draining = asyncio.ensure_future(protocol.writer.drain())
            for _ in range(3):
                await asyncio.sleep(0)
            if not draining.done():
                break
        receiving = asyncio.ensure_future(peer.receive(written))
        await draining
        assert len(await receiving) == written
        protocol.writer.transport.abort()
        with pytest.raises(ConnectionError):
            while True:
                await protocol.writer.drain()
                await asyncio.sleep(0)
        await protocol.gone
        peer.sock.close()

    run(main())


class StreamRecorder(asyncio.StreamReaderProtocol):
    """A stream, and when its connection is lost."""

    def __init__(self) -> None:
        self.reader = asyncio.StreamReader()
        self.gone = asyncio.get_running_loop().create_future()
        super().__init__(self.reader)

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.writer = asyncio.StreamWriter(transport, self, self.reader, asyncio.get_running_loop())

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self.gone.set_result(error)


def test_a_small_write_does_not_pause_the_writer_at_limit_zero(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        transport = protocol.transport
        assert transport.get_write_buffer_limits() == (128 * 1024, 512 * 1024)
        transport.set_write_buffer_limits(high=0)
        assert transport.get_write_buffer_limits() == (0, 0)
        transport.write(b"x")
        assert await peer.receive(1) == b"x"
        assert protocol.flow == []
        transport.set_write_buffer_limits(low=10)
        assert transport.get_write_buffer_limits() == (10, 40)
        with pytest.raises(ValueError):
            transport.set_write_buffer_limits(high=1, low=2)
        await leave(protocol, peer)

    run(main())


def test_data_written_in_resume_writing_is_sent(run: Any) -> None:
    """asyncio loses what the transport below has not taken yet when the connection is closed."""

    class Refiller(Recorder):
        written = 0

        def more(self) -> None:
            self.transport.write(bytes(1_000_000))
            self.written += 1_000_000

        def resume_writing(self) -> None:
            self.more()
            super().resume_writing()

    async def main() -> None:
        protocol, peer = await connect(Refiller, family="unix")
        while not protocol.flow:
            protocol.more()
            await asyncio.sleep(0)
        receiving = asyncio.ensure_future(peer.receive(1 << 30))
        await protocol.when(lambda: "resume" in protocol.flow)
        protocol.transport.close()
        assert len(await receiving) == protocol.written
        await peer.goodbye()
        assert await protocol.lost is None
        peer.sock.close()

    run(main())


@pytest.mark.contract
def test_an_exception_of_pause_writing_is_reported(run: Any, reports: list[dict[str, Any]]) -> None:
    class Failing(Recorder):
        def pause_writing(self) -> None:
            super().pause_writing()
            raise ZeroDivisionError

    async def main() -> None:
        protocol, peer = await connect(Failing, family="unix")
        await fill(protocol, peer)
        await leave(protocol, peer)

    run(main())
    assert [report["message"] for report in reports] == ["protocol.pause_writing() failed"]
    reports.clear()
