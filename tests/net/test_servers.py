"""Servers: what happens to the socket they listen on."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Any

from tests.streams import Recorder, is_open
from tests.tls import peers


def listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def reopened(number: int) -> socket.socket:
    """Another listening socket under the number that one just closed had."""
    made = listening()
    if made.fileno() == number:
        return made
    os.dup2(made.fileno(), number)
    made.close()
    return socket.socket(fileno=number)


def test_a_server_whose_socket_was_closed_leaves_the_next_one_alone(loop: Any) -> None:
    """Its descriptor's number is another server's by then."""

    async def main() -> None:
        first = listening()
        closed = await loop.create_server(Recorder, sock=first)
        number = first.fileno()
        first.close()
        await asyncio.sleep(0)
        second = reopened(number)
        made: list[Recorder] = []

        def factory() -> Recorder:
            made.append(Recorder())
            return made[-1]

        server = await loop.create_server(factory, sock=second)
        closed.close()
        await asyncio.sleep(0)
        assert second.fileno() == number and is_open(number)
        for _ in range(2):
            _, writer = await asyncio.open_connection(*second.getsockname())
            writer.write(b"x")
            while not made:
                await asyncio.sleep(0)
            protocol = made.pop()
            await protocol.until(1)
            writer.close()
            await protocol.lost
            await writer.wait_closed()
        server.close()
        await server.wait_closed()
        assert not is_open(number)

    loop.run_until_complete(asyncio.wait_for(main(), 30))


def test_a_socket_served_twice_is_the_second_ones(loop: Any) -> None:
    async def main() -> None:
        sock = listening()
        made: list[str] = []

        def factory(name: str) -> Any:
            made.append(name)
            return asyncio.Protocol()

        servers = [await loop.create_server(lambda name=name: factory(name), sock=sock) for name in "ab"]
        for _ in range(3):
            _, writer = await asyncio.open_connection(*sock.getsockname())
            count = len(made)
            while len(made) == count and count == 0:
                await asyncio.sleep(0)
            writer.close()
            await writer.wait_closed()
        while len(made) < 3:
            await asyncio.sleep(0)
        assert made == ["b"] * 3
        for server in servers:
            server.close()

    loop.run_until_complete(asyncio.wait_for(main(), 30))


def test_a_task_factory_that_fails_does_not_end_the_loop(loop: Any) -> None:
    """A TLS server makes a task for each handshake: what that raises was raised by run_forever."""

    async def main() -> None:
        server = await loop.create_server(Recorder, "127.0.0.1", 0, ssl=peers.server_context())
        made = loop.get_task_factory()

        def failing(*_: Any, **__: Any) -> Any:
            loop.set_task_factory(made)
            raise ZeroDivisionError

        loop.set_task_factory(failing)
        with socket.create_connection(server.sockets[0].getsockname()) as client:
            client.setblocking(False)
            assert await loop.sock_recv(client, 1) == b""
        server.close()
        await server.wait_closed()

    reports: list[Any] = []
    loop.set_exception_handler(lambda _, report: reports.append(report))
    loop.run_until_complete(main())
    (report,) = reports
    assert isinstance(report["exception"], ZeroDivisionError)
    reports.clear()
