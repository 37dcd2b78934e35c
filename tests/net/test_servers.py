"""Servers: what happens to the socket they listen on."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
from asyncio import constants
from contextlib import suppress
from typing import Any

import pytest

from tests.streams import Recorder, is_open, turns
from tests.tls import peers
from uringloop.net.servers import Listener


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


def test_a_server_whose_socket_was_closed_does_not_disturb_the_next_server(loop: Any) -> None:
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


@pytest.mark.contract
def test_a_program_can_remove_and_replace_the_reader_of_a_server(loop: Any) -> None:
    """asyncio's servers are readers of their sockets, and programs take those over (to pass a listener on, say)."""

    async def main() -> None:
        made: list[Recorder] = []
        server = await loop.create_server(lambda: made.append(Recorder()), "127.0.0.1", 0)
        listener = server.sockets[0]
        assert loop.remove_reader(listener.fileno()) is True
        assert loop.remove_reader(listener.fileno()) is False
        with socket.create_connection(listener.getsockname()):
            told = asyncio.Event()
            loop.add_reader(listener.fileno(), told.set)
            await told.wait()
        assert loop.remove_reader(listener.fileno()) is True
        other = await loop.create_server(lambda: made.append(Recorder()), "127.0.0.1", 0)
        listener = other.sockets[0]
        told.clear()
        loop.add_reader(listener.fileno(), told.set)
        with socket.create_connection(listener.getsockname()):
            await told.wait()
            await turns()
        assert loop.remove_reader(listener.fileno()) is True
        assert made == []
        server.close()
        other.close()

    loop.run_until_complete(asyncio.wait_for(main(), 30))


def test_the_second_server_of_a_socket_gets_its_connections(loop: Any) -> None:
    async def main() -> None:
        sock = listening()
        made: list[str] = []
        ended: list[Any] = []

        class Ending(asyncio.Protocol):
            def connection_lost(self, error: Exception | None) -> None:
                ended.append(error)

        def factory(name: str) -> Any:
            made.append(name)
            return Ending()

        servers = [await loop.create_server(lambda name=name: factory(name), sock=sock) for name in "ab"]
        for _ in range(3):
            _, writer = await asyncio.open_connection(*sock.getsockname())
            count = len(made)
            while len(made) == count and count == 0:
                await asyncio.sleep(0)
            writer.close()
            await writer.wait_closed()
        while len(made) < 3 or len(ended) < 3:
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


def test_a_shortage_of_descriptors_is_reported_once_until_it_is_over(
    loop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "ACCEPT_RETRY_DELAY", 0.001)
    failures: list[int] = []
    failed = Listener.failed

    def counted(self: Listener, number: int) -> None:
        failures.append(number)
        failed(self, number)

    monkeypatch.setattr(Listener, "failed", counted)
    reports: list[str] = []
    loop.set_exception_handler(lambda loop, context: reports.append(context["message"]))

    async def run_out(address: Any) -> None:
        """A connection that cannot be accepted, until it can."""
        client = socket.socket()
        client.setblocking(False)
        fillers = []
        with suppress(OSError):
            while True:
                fillers.append(os.dup(client.fileno()))
        client.connect_ex(address)
        before = len(failures)
        while len(failures) < before + 3:
            await asyncio.sleep(0.001)
        for filler in fillers:
            os.close(filler)
        _, protocol = await loop.create_connection(Recorder, sock=client)
        await protocol.lost

    async def main() -> None:
        server = await loop.create_server(lambda: Closing(), "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        for times in (1, 2):
            await run_out(address)
            assert reports == ["socket.accept() out of system resource"] * times
        assert set(failures) == {errno.EMFILE}
        server.close()
        await server.wait_closed()

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 20, before[1]))
    try:
        loop.run_until_complete(asyncio.wait_for(main(), 30))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


class Closing(asyncio.Protocol):
    def connection_made(self, transport: Any) -> None:
        transport.close()
