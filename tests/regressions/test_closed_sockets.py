"""A socket that the program closes under its transport: nothing of one connection may reach another."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Any


class Lost(asyncio.DatagramProtocol):
    def __init__(self) -> None:
        self.lost = asyncio.get_running_loop().create_future()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set_result(error)


def test_data_of_a_closed_socket_does_not_reach_the_next_owner_of_its_number(loop: Any) -> None:
    async def main() -> None:
        near, far = socket.socketpair()
        transport, protocol = await loop.create_connection(Lost, sock=near)
        near.close()
        others = socket.socketpair()  # one of them would have the number
        transport.write(b"for far")
        transport.close()
        assert await protocol.lost is None
        assert far.recv(100) == b"for far"
        far.setblocking(False)
        assert (
            await loop.sock_recv(far, 100) == b""
        )  # closed with its transport, when the kernel is done with it
        for other in others:
            other.setblocking(False)
            try:
                raise AssertionError(other.recv(100))
            except BlockingIOError:
                pass
        for each in (*others, far):
            each.close()

    loop.run_until_complete(main())


def test_an_endpoint_closes_no_foreign_descriptor(loop: Any) -> None:
    async def main() -> None:
        near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        near.bind(("127.0.0.1", 0))
        near.setblocking(False)
        transport, protocol = await loop.create_datagram_endpoint(Lost, sock=near)
        near.close()
        other = os.open("/dev/null", os.O_RDWR)
        transport.close()
        await protocol.lost
        os.close(other)  # EBADF if the endpoint took it for its own

    loop.run_until_complete(main())
