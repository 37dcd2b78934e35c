"""What other libraries and test suites put in the place of a module's classes while the loop runs."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from typing import Any

import pytest

from tests.streams import Recorder
from tests.tls.peers import client_context, server_context

_Socket = socket.socket
_waitpid = os.waitpid


def passes_through(*args: Any, **named: Any) -> socket.socket:
    """As asyncssh's tests put it in the place of socket.socket: no class."""
    return _Socket(*args, **named)


@pytest.fixture
def patched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", passes_through)


@pytest.mark.contract
@pytest.mark.parametrize("tls", [False, True])
def test_streams_work_if_socket_socket_is_not_a_class(loop: Any, patched: None, tls: bool) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert writer.get_extra_info("socket").fileno() >= 0
        writer.write(await reader.readline())
        await writer.drain()
        writer.close()

    async def main() -> None:
        options: dict[str, Any] = {"ssl": client_context(), "server_hostname": "localhost"} if tls else {}
        server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=server_context() if tls else None)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), **options)
        writer.write(b"hello\n")
        assert await reader.readline() == b"hello\n"
        writer.close()
        await writer.wait_closed()
        server.close()
        await server.wait_closed()

    loop.run_until_complete(asyncio.wait_for(main(), 10))


@pytest.mark.contract
def test_datagrams_work_if_socket_socket_is_not_a_class(loop: Any, patched: None) -> None:
    class Answer(asyncio.DatagramProtocol):
        def connection_made(self, transport: Any) -> None:
            self.transport = transport

        def datagram_received(self, data: bytes, address: Any) -> None:
            received.set_result(data)

    async def main() -> None:
        transport, _ = await loop.create_datagram_endpoint(Answer, local_addr=("127.0.0.1", 0))
        transport.sendto(b"hello", transport.get_extra_info("sockname"))
        assert await received == b"hello"
        transport.close()
        await asyncio.sleep(0)

    received = loop.create_future()
    loop.run_until_complete(asyncio.wait_for(main(), 10))


@pytest.mark.contract
def test_add_reader_and_sock_recv_work_if_socket_socket_is_not_a_class(loop: Any, patched: None) -> None:
    async def main() -> None:
        readable = loop.create_future()
        loop.add_reader(ours, readable.set_result, None)
        theirs.send(b"hello")
        await readable
        assert loop.remove_reader(ours)
        assert await loop.sock_recv(ours, 5) == b"hello"

    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        loop.run_until_complete(asyncio.wait_for(main(), 10))


def test_start_tls_works_if_stream_reader_protocol_is_not_a_class(
    loop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    writers: list[asyncio.StreamWriter] = []  # one that goes with its transport open gives a warning

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        transport, protocol = writer.transport, writer.transport.get_protocol()
        upgraded = await loop.start_tls(transport, protocol, server_context(), server_side=True)
        upgraded.write(b"hello")
        upgraded.close()

    protocol_class = asyncio.StreamReaderProtocol
    monkeypatch.setattr(asyncio.streams, "StreamReaderProtocol", lambda *_, **named: None)

    async def main() -> None:
        def factory() -> asyncio.StreamReaderProtocol:
            return protocol_class(asyncio.StreamReader(), connected)

        server = await loop.create_server(factory, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        _, client = await loop.create_connection(
            Recorder, host, port, ssl=client_context(), server_hostname="localhost"
        )
        await client.lost
        assert client.received == b"hello"
        server.close()
        await server.wait_closed()

    loop.run_until_complete(asyncio.wait_for(main(), 10))


class WithoutLock(subprocess.Popen[bytes]):
    """As gevent's: nothing of how the standard library waits for the process is there."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        del self._waitpid_lock

    def poll(self) -> int | None:
        return self.returncode


def never_ended(pid: int, options: int) -> tuple[int, int]:
    """gevent's os.waitpid for its own Popen's processes, while gevent's loop does not run."""
    return (0, 0) if options & os.WNOHANG else _waitpid(pid, options)


@pytest.mark.contract
@pytest.mark.parametrize("killed", [False, True])
def test_the_end_of_a_process_is_reported_with_a_patched_subprocess(
    loop: Any, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    async def main() -> None:
        process = await asyncio.create_subprocess_exec(
            *("sleep", "100") if killed else ("sh", "-c", "echo hello; exit 3"), stdout=subprocess.PIPE
        )
        if killed:
            process.kill()
        output, _ = await process.communicate()
        assert (output, process.returncode) == ((b"", -9) if killed else (b"hello\n", 3))

    monkeypatch.setattr(subprocess, "Popen", WithoutLock)
    monkeypatch.setattr(os, "waitpid", never_ended)
    loop.run_until_complete(asyncio.wait_for(main(), 10))
