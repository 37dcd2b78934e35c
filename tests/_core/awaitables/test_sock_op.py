"""The compiled sock_* calls; what asyncio promises of them is tests/net/test_sock_calls.py's."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any

import pytest

from tests.streams import turns


class Counting(socket.socket):
    """As a socket that goes through a proxy: its methods are its own."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.called: set[str] = set()
        self.setblocking(False)

    def recv(self, *arguments: Any) -> bytes:
        self.called.add("recv")
        return super().recv(*arguments)

    def recv_into(self, *arguments: Any) -> int:
        self.called.add("recv_into")
        return super().recv_into(*arguments)

    def send(self, data: Any, *arguments: Any) -> int:
        self.called.add("send")
        return super().send(bytes(data[:3]), *arguments)


@pytest.mark.contract
def test_the_methods_of_a_kind_of_socket_are_called(loop: Any) -> None:
    async def main() -> None:
        left, right = socket.socketpair()
        with Counting(fileno=left.detach()) as sock, right:
            right.setblocking(False)
            receiving = loop.create_task(loop.sock_recv(sock, 10))
            await turns()
            right.send(b"first")
            assert await receiving == b"first"
            receiving = loop.create_task(loop.sock_recv_into(sock, bytearray(10)))
            await turns()
            right.send(b"second")
            assert await receiving == 6
            await loop.sock_sendall(sock, b"in many pieces")
            assert right.recv(100) == b"in many pieces"
            assert sock.called == {"recv", "recv_into", "send"}

    loop.run_until_complete(asyncio.wait_for(main(), 20))


@pytest.mark.contract
def test_a_socket_subclass_sends_all_in_small_pieces(loop: Any) -> None:
    async def main() -> None:
        left, right = socket.socketpair()
        with socket.socket(fileno=left.detach()) as plain, right:
            data = bytes(range(256)) * 40
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
            with Counting(fileno=plain.detach()) as sock:
                right.setblocking(False)
                sending = loop.create_task(loop.sock_sendall(sock, bytearray(data)))
                received = b""
                while len(received) < len(data):
                    received += await loop.sock_recv(right, 10_000)
                await sending
                assert received == data

    loop.run_until_complete(asyncio.wait_for(main(), 20))


@pytest.mark.parametrize("name", ["recv", "recv_into", "recvfrom", "recvfrom_into"])
def test_cancelling_between_any_two_turns_loses_no_message(loop: Any, name: str) -> None:
    """asyncio's own loop takes the message before it looks whether anybody still waits."""

    async def main() -> None:
        left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with left, right:
            left.setblocking(False)
            sent: list[bytes] = []
            received: list[bytes] = []
            for turn in range(120):
                buffer = bytearray(10)
                receive = {
                    "recv": lambda: loop.sock_recv(left, 10),
                    "recv_into": lambda buffer=buffer: loop.sock_recv_into(left, buffer),
                    "recvfrom": lambda: loop.sock_recvfrom(left, 10),
                    "recvfrom_into": lambda buffer=buffer: loop.sock_recvfrom_into(left, buffer),
                }[name]
                receiving = loop.create_task(receive())
                await turns(turn % 4)
                if turn % 3 and len(sent) - len(received) < 5:
                    sent.append(b"%03d" % turn)
                    right.send(sent[-1])
                await turns(turn // 4 % 5)
                receiving.cancel()
                with suppress(asyncio.CancelledError):
                    got = await receiving
                    received.append(
                        bytes(buffer[:3]) if "into" in name else got if name == "recv" else got[0]
                    )
            while len(received) < len(sent):
                received.append(left.recv(10))
            assert received == sent

    loop.run_until_complete(asyncio.wait_for(main(), 20))
