"""What arrives: all of it, once, in order, whatever the reader does."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from tests.streams import BufferedRecorder, Recorder
from tests.tls.peers import connect, leave


class Views(BufferedRecorder):
    """Offers a part of one buffer that stays."""

    kept = bytearray(1000)

    def get_buffer(self, sizehint: int) -> memoryview:
        self.buffer = memoryview(self.kept)[:77]  # type: ignore[assignment]
        return self.buffer  # type: ignore[return-value]


@pytest.mark.parametrize("sizes", [(1,), (7, 100), (16384,), (65536,), (300_000,)])
def test_buffers_of_every_size_are_filled(run: Any, sizes: tuple[int, ...]) -> None:
    """asyncio loses data where a bytearray is larger than a record."""

    class Buffers(BufferedRecorder):
        pass

    Buffers.sizes = sizes
    size = 5000 if sizes == (1,) else 200_000

    async def main() -> None:
        protocol, peer = await connect(Buffers)
        message = os.urandom(size)
        sending = asyncio.ensure_future(peer.send(message))
        assert await protocol.until(size) == message
        await sending
        await leave(protocol, peer)

    run(main())


@pytest.mark.contract
def test_a_memoryview_that_get_buffer_returns_is_filled(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect(Views)
        message = os.urandom(20_000)
        sending = asyncio.ensure_future(peer.send(message))
        assert await protocol.until(20_000) == message
        await sending
        await leave(protocol, peer)

    run(main())


def test_an_empty_buffer_ends_the_connection(run: Any, reports: list[dict[str, Any]]) -> None:
    class Emptied(BufferedRecorder):
        sizes = (100, 0)

    async def main() -> None:
        protocol, peer = await connect(Emptied)
        await peer.send(bytes(150))
        assert isinstance(await protocol.lost, RuntimeError)
        peer.sock.close()

    run(main())
    assert [report["message"] for report in reports] == ["Fatal error on SSL protocol"]
    reports.clear()


class Pausing(Recorder):
    """Pauses at every arrival."""

    def data_received(self, data: bytes) -> None:
        self.transport.pause_reading()
        super().data_received(data)


class BufferedPausing(BufferedRecorder):
    sizes = (1000,)

    def buffer_updated(self, nbytes: int) -> None:
        self.transport.pause_reading()
        super().buffer_updated(nbytes)


@pytest.mark.parametrize("factory", [Pausing, BufferedPausing])
@pytest.mark.parametrize("ending", ["goodbye", "eof", "both"])
def test_pausing_at_every_arrival_loses_no_data(run: Any, side: str, factory: Any, ending: str) -> None:
    """asyncio tells of the end while there is more, and loses what a small buffer did not take."""

    async def main() -> None:
        protocol, peer = await connect(factory, side)
        message = os.urandom(60_000)

        async def send() -> None:
            await peer.send(message)
            if ending != "eof":
                await peer.say_goodbye()
            if ending != "goodbye":
                peer.end()

        sending = asyncio.ensure_future(send())
        while len(protocol.received) < len(message):
            size = len(protocol.received)
            await protocol.when(lambda size=size: len(protocol.received) > size)  # type: ignore[misc]
            for _ in range(5):
                await asyncio.sleep(0)
            assert not protocol.transport.is_reading()
            assert "eof" not in protocol.calls
            before = len(protocol.received)
            await asyncio.sleep(0)
            assert len(protocol.received) == before
            protocol.transport.resume_reading()
        await sending
        await protocol.ended.wait()
        await protocol.lost
        assert protocol.received == message
        assert protocol.calls[-2:] == ["eof", "lost"]
        peer.sock.close()

    run(main())


@pytest.mark.contract
@pytest.mark.parametrize("ending", ["goodbye", "eof"])
def test_data_beyond_the_read_limit_waits_for_a_paused_reader(run: Any, ending: str) -> None:
    """More than the limit of what is read meanwhile, and the end behind it."""

    async def main() -> None:
        protocol, peer = await connect()
        protocol.transport.pause_reading()
        message = os.urandom(2_000_000)

        async def send() -> None:
            await peer.send(message)
            await peer.say_goodbye()
            if ending == "eof":
                peer.end()

        sending = asyncio.ensure_future(send())
        while protocol.transport.get_read_buffer_size() < protocol.transport.get_read_buffer_limits()[1]:
            await asyncio.sleep(0)
        assert not protocol.received
        protocol.transport.resume_reading()
        await protocol.until(len(message))
        await sending
        assert await protocol.lost is None
        assert protocol.received == message
        peer.sock.close()

    run(main())


@pytest.mark.contract
def test_pausing_and_resuming_at_once_changes_nothing(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        for _ in range(3):
            protocol.transport.pause_reading()
            protocol.transport.pause_reading()
            protocol.transport.resume_reading()
            protocol.transport.resume_reading()
        assert protocol.transport.is_reading()
        await peer.send(b"here")
        assert await protocol.until(4) == b"here"
        await leave(protocol, peer)

    run(main())


@pytest.mark.contract
def test_set_protocol_hands_later_data_to_the_new_protocol(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        await peer.send(b"first")
        await protocol.until(5)
        for factory in (BufferedRecorder, Recorder):
            successor = factory()
            successor.transport = protocol.transport
            protocol.transport.set_protocol(successor)
            assert protocol.transport.get_protocol() is successor
            await peer.send(b"second")
            assert await successor.until(6) == b"second"
        assert protocol.received == b"first"
        successor.transport.abort()
        await successor.lost
        peer.sock.close()

    run(main())


@pytest.mark.contract
def test_an_exception_of_data_received_ends_the_connection(run: Any, reports: list[dict[str, Any]]) -> None:
    class Failing(Recorder):
        def data_received(self, data: bytes) -> None:
            raise ZeroDivisionError

    async def main() -> None:
        protocol, peer = await connect(Failing)
        await peer.send(b"some")
        assert isinstance(await protocol.lost, ZeroDivisionError)
        peer.sock.close()

    run(main())
    (report,) = reports
    assert report["message"] == "Fatal error on SSL protocol"
    assert isinstance(report["exception"], ZeroDivisionError)
    reports.clear()


def test_keyboard_interrupt_leaves_the_loop_and_loses_no_data(loop: Any, run: Any) -> None:
    class Interrupted(BufferedRecorder):
        sizes = (100,)
        interrupts = 1

        def buffer_updated(self, nbytes: int) -> None:
            super().buffer_updated(nbytes)
            if self.interrupts:
                self.interrupts -= 1
                raise KeyboardInterrupt

    async def begin() -> Any:
        protocol, peer = await connect(Interrupted)
        return protocol, peer

    protocol, peer = run(begin())
    message = os.urandom(1000)

    async def send() -> None:
        await peer.send(message)
        await protocol.until(1)

    sending = loop.create_task(send())
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(sending)
    loop.run_until_complete(sending)
    run(protocol.until(1000))
    assert protocol.received == message
    run(leave(protocol, peer))


def test_data_before_a_broken_record_is_delivered(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        peer.tls.write(b"good")
        await asyncio.get_running_loop().sock_sendall(
            peer.sock, peer.outgoing.read() + b"this is no record" * 9
        )
        error = await protocol.lost
        assert isinstance(error, OSError)
        assert protocol.received == b"good"
        peer.sock.close()

    run(main())
