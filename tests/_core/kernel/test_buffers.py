"""The pool of receive buffers: what happens when there are fewer than arrivals."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Callable
from typing import Any

import pytest

from tests.streams import BufferedRecorder, Recorder

CROWD = """
import asyncio, socket, uringloop
loop = uringloop.new_event_loop()
count, expected = 40, b"".join(b"%04d" % i for i in range(200))

class Receiver(asyncio.Protocol):
    def __init__(self):
        self.received = b""
        self.lost = loop.create_future()
    def data_received(self, data):
        self.received += data
    def connection_lost(self, error):
        self.lost.set_result(error)

async def main():
    pairs = [socket.socketpair() for _ in range(count)]
    receivers = [(await loop.create_connection(Receiver, sock=left))[1] for left, _ in pairs]
    await asyncio.sleep(0)
    before = loop.statistics().buffers
    for _, right in pairs:  # before the loop sees any of it
        for i in range(0, len(expected), 8):
            right.send(expected[i:i + 8])
        right.close()
    for receiver in receivers:
        assert await receiver.lost is None
        assert receiver.received == expected
    return before

before = loop.run_until_complete(main())
after = loop.statistics()
assert after.buffers_out == 0, after
print(before, after.buffers)
loop.close()
"""


@pytest.mark.engines("uring")
@pytest.mark.parametrize("disable", ["", "multishot_recv", "buffer_ring"])
def test_without_a_free_buffer_nothing_is_lost_and_there_are_more_soon(
    program: Callable[..., Any], engine: str, disable: str
) -> None:
    """Forty connections with data at once, and four buffers: the kernel says ENOBUFS, and receiving goes on."""
    before, after = map(int, program(CROWD, URINGLOOP_TINY="1", URINGLOOP_DISABLE=disable).stdout.split())
    assert before <= 4
    assert after > before or disable == "buffer_ring"


@pytest.mark.contract
@pytest.mark.parametrize("kind", [Recorder, BufferedRecorder])
def test_no_byte_of_a_connection_reaches_another(loop: Any, kind: type[Recorder]) -> None:
    """Each connection sends a byte of its own. Debug builds fill free buffers with another byte, so they also show
    what a receiver reads too late, or behind the end of what has arrived."""
    choices = random.Random(1)

    async def main() -> None:
        peers, receivers = [], []
        for _ in range(24):
            ours, theirs = socket.socketpair()
            receivers.append((await loop.create_connection(kind, sock=ours))[1])
            peers.append(theirs)
        sent = [0] * len(peers)
        for turn in range(100):
            for number in choices.sample(range(len(peers)), 8):
                size = choices.choice((1, 7, 100, 4095, 4096, 4097, 9000))
                peers[number].sendall(bytes([number + 1]) * size)
                sent[number] += size
                if turn % 3 == 0:
                    receivers[number].transport.pause_reading()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            for receiver in receivers:
                receiver.transport.resume_reading()
            for receiver, size in zip(receivers, sent, strict=True):
                await receiver.until(size)
        for number, receiver in enumerate(receivers):
            assert receiver.received == bytes([number + 1]) * sent[number]
            peers[number].close()
            await receiver.lost

    loop.run_until_complete(main())
