"""Receiving on a stream: the ways it changes to as little or much arrives at a time lose and reorder nothing."""

from __future__ import annotations

import asyncio
import gc
import random
import socket
import warnings
from typing import Any

import pytest

from tests.streams import BufferedRecorder, Recorder, connect, pair

# In runs, so that each way of receiving is taken up and left again.
SIZES = [100_000] * 8 + [1] * 6 + [40_000] * 5 + [8191, 8192, 8193] + [200_000] * 5 + [10] * 6 + [300_000] * 3


class Pausing(Recorder):
    """Pauses reading now and then, from within."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if len(self.calls) % 5 == 0:
            self.transport.pause_reading()
            asyncio.get_running_loop().call_soon(self.transport.resume_reading)


class Small(BufferedRecorder):
    sizes = (65536, 10_000, 70_000)


async def send_all(peer: Any, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(peer, data)


@pytest.mark.contract
@pytest.mark.parametrize("protocol_class", [Recorder, Pausing, Small])
def test_small_and_large_writes_in_alternation_arrive_whole(
    loop: asyncio.AbstractEventLoop, protocol_class: type[Recorder]
) -> None:
    async def main() -> None:
        protocol, peer = await connect(protocol_class)
        with peer:
            sent = 0
            for size in SIZES:
                data = random.Random(size).randbytes(size)
                await send_all(peer, data)
                sent += size
                assert (await protocol.until(sent))[sent - size :] == data
            assert len(protocol.received) == sent
        await protocol.lost

    loop.run_until_complete(main())


@pytest.mark.contract
def test_a_stream_reader_receives_all_data(loop: asyncio.AbstractEventLoop) -> None:
    data = b"".join(random.Random(size).randbytes(size) for size in SIZES)

    async def main() -> None:
        sock, peer = pair()
        reader, writer = await asyncio.open_connection(sock=sock)
        sending = asyncio.ensure_future(send_all(peer, data))
        received = bytearray()
        while len(received) < len(data):
            received += await reader.read(50_000)
        await sending
        peer.close()
        assert await reader.read() == b""
        assert received == data
        writer.close()
        await writer.wait_closed()

    loop.run_until_complete(main())


def test_the_end_is_reported_after_a_large_amount_of_data(loop: asyncio.AbstractEventLoop) -> None:
    """Where the sender closes right after its last byte."""

    async def main() -> None:
        protocol, peer = await connect(Recorder)
        for _ in range(8):
            await send_all(peer, b"x" * 100_000)
        peer.close()
        await protocol.lost
        assert len(protocol.received) == 800_000
        assert protocol.calls[-2:] == ["eof", "lost"]

    loop.run_until_complete(main())


class Answers(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)  # type: ignore[attr-defined]


def test_a_loop_closed_while_data_arrives_is_collected(new_loop: Any) -> None:
    """What had arrived belonged to a pool that the collector may take apart first (free-threaded Pythons do)."""

    async def traffic(loop: Any) -> None:
        first = []
        for _ in range(4):
            for end in socket.socketpair():
                end.setblocking(False)
                first.append((await loop.create_connection(Answers, sock=end))[1])
        for protocol in first[::2]:
            protocol.transport.write(b"x" * 64)
        await asyncio.sleep(0.001)

    for _ in range(5):
        loop = new_loop()
        loop.run_until_complete(traffic(loop))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the transports that nobody closed
            loop.close()
            del loop
            gc.collect()
