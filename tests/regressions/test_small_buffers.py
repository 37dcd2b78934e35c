"""A BufferedProtocol with small buffers is called often for what arrives at once. Others have their turn in between."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from tests.streams import pair
from tests.tls import peers

SIZE = 16


class Small(asyncio.BufferedProtocol):
    calls = 0

    def __init__(self) -> None:
        self.buffer = bytearray(SIZE)
        self.received = bytearray()
        self.ended = asyncio.get_running_loop().create_future()

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        Small.calls += 1
        self.received += self.buffer[:nbytes]

    def connection_lost(self, error: Exception | None) -> None:
        self.ended.set_result(error)


class Ticking:
    """Counts the calls between two callbacks of a chain, which sees every turn."""

    def __init__(self) -> None:
        self.most = 0
        self.seen = Small.calls
        self.tick()

    def tick(self) -> None:
        self.most = max(self.most, Small.calls - self.seen)
        self.seen = Small.calls
        self.handle = asyncio.get_running_loop().call_soon(self.tick)


def stuffed(peer: socket.socket, data: bytes) -> bytes:
    """Send what the sockets hold, and the end of it."""
    sent = 0
    try:
        while sent < len(data):
            sent += peer.send(data[sent:])
    except BlockingIOError:
        pass
    peer.shutdown(socket.SHUT_WR)
    return data[:sent]


@pytest.mark.contract
@pytest.mark.parametrize(("count", "most"), [(1, 64), (4, 256), (40, 1064)])
def test_a_protocol_with_small_buffers_lets_other_callbacks_run(loop: Any, count: int, most: int) -> None:
    async def main() -> None:
        sockets = [pair("unix") for _ in range(count)]
        data = bytes(range(256)) * 400
        sent = [stuffed(peer, data) for _, peer in sockets]
        made = [await loop.create_unix_connection(Small, sock=left) for left, _ in sockets]
        ticking = Ticking()
        for _, protocol in made:
            await protocol.ended
        ticking.handle.cancel()
        assert ticking.most <= most
        assert [bytes(protocol.received) for _, protocol in made] == sent
        for _, peer in sockets:
            peer.close()

    loop.run_until_complete(asyncio.wait_for(main(), 60))


@pytest.mark.contract
def test_a_protocol_with_small_buffers_can_pause_and_loses_no_data(loop: Any) -> None:
    class Pausing(Small):
        def buffer_updated(self, nbytes: int) -> None:
            super().buffer_updated(nbytes)
            if len(self.received) % 160 == 0:
                self.transport.pause_reading()
                loop.call_soon(self.transport.resume_reading)

        def connection_made(self, transport: Any) -> None:
            self.transport = transport

    async def main() -> None:
        left, peer = pair("unix")
        sent = stuffed(peer, bytes(range(256)) * 100)
        _, protocol = await loop.create_unix_connection(Pausing, sock=left)
        await protocol.ended
        assert bytes(protocol.received) == sent
        peer.close()

    loop.run_until_complete(asyncio.wait_for(main(), 60))


@pytest.mark.parametrize(("count", "most"), [(1, 64), (4, 256), (40, 1064)])
def test_a_tls_protocol_with_small_buffers_lets_other_callbacks_run(loop: Any, count: int, most: int) -> None:
    """asyncio's loop fills one a turn, but loses what is left when the peer has said goodbye."""
    data = bytes(range(256)) * 100

    async def main() -> None:
        made = [await peers.connect(Handshaken) for _ in range(count)]
        ticking = Ticking()
        sending = [asyncio.ensure_future(send_all(peer)) for _, peer in made]
        for protocol, _ in made:
            await protocol.ended
            assert protocol.received == data
        await asyncio.gather(*sending)
        ticking.handle.cancel()
        assert ticking.most <= most
        for _, peer in made:
            peer.sock.close()

    async def send_all(peer: peers.Peer) -> None:
        await peer.send(data)
        await peer.say_goodbye()
        peer.end()

    loop.run_until_complete(asyncio.wait_for(main(), 60))


class Handshaken(Small):
    def connection_made(self, transport: Any) -> None:
        self.transport = transport
