"""A peer that closes with unread input resets the connection. The kernel tells of that once, to the send or to the
receive that asks first: whichever it is, the protocol is told of the reset, and never of an orderly end."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

from tests.streams import Recorder, connect, turns

LARGE = 1 << 16


async def receiving_directly(protocol: Recorder, peer: socket.socket) -> None:
    """Much has arrived at a time, so the transport waits for readiness and receives where the bytes belong."""
    loop = asyncio.get_running_loop()
    for _ in range(12):
        size = len(protocol.received)
        await loop.sock_sendall(peer, bytes(LARGE))
        await protocol.until(size + LARGE)


async def arrival(peer: socket.socket) -> None:
    """Something has, and stays unread."""
    while True:
        try:
            peer.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            await asyncio.sleep(0)
        else:
            return


@pytest.mark.contract
def test_a_reset_found_by_a_send_is_not_reported_as_the_end_of_the_stream(loop: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        await receiving_directly(protocol, peer)
        calls = protocol.calls

        # Paused in the turn that learns of data: the receive is ready to run when it is resumed, before the send that
        # fails, and finds what the send has left of the reset.
        loop.call_soon(protocol.transport.pause_reading)
        peer.send(b"data")
        await turns()
        protocol.transport.write(b"unread")
        await arrival(peer)
        peer.close()
        protocol.transport.resume_reading()
        protocol.transport.write(b"too late")
        error = await protocol.lost
        assert isinstance(error, ConnectionResetError)
        assert "eof" not in calls

    loop.run_until_complete(asyncio.wait_for(main(), 10))


@pytest.mark.engines("uring", "epoll", "asyncio")  # the fake one puts a receive off behind writes that fail
@pytest.mark.contract
def test_racing_resets_are_reported_as_resets(loop: Any) -> None:
    """Peers in a thread close, with unread input, while the loop sends and receives."""
    listener = socket.create_server(("127.0.0.1", 0))
    count = 300

    def serve() -> None:
        for number in range(count):
            try:
                peer, _ = listener.accept()
            except OSError:  # the test is over
                return
            peer.settimeout(10)
            peer.recv(1)
            peer.recv(1, socket.MSG_PEEK)
            peer.send(bytes(100 if number % 2 else 60000))
            peer.close()

    class Talking(Recorder):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            transport.write(b"some unread input")

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.transport.write(bytes(200_000))
            self.transport.write(b"more")
            loop.call_soon(self.transport.write, b"and more")

    async def main() -> None:
        for _ in range(count // 10):
            made = await asyncio.gather(
                *[loop.create_connection(Talking, *listener.getsockname()) for _ in range(10)]
            )
            for _, protocol in made:
                error = await protocol.lost
                assert isinstance(error, ConnectionResetError), error
                assert "eof" not in protocol.calls

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        loop.run_until_complete(asyncio.wait_for(main(), 60))
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
