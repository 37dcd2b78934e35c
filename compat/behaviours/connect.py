"""create_connection and its arguments."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from typing import Any

from compat.behaviours import check
from compat.behaviours.helpers import Echo, Recorder, open_fds, pair, raises_async, serving, soon, until

CONNECT = "create_connection host/sock/local_addr, 200 KB write"
EYEBALLS = "happy_eyeballs_delay, interleave"
ALL_ERRORS = "all_errors=True (ExceptionGroup) 3.12"
NAMES = "getaddrinfo, getnameinfo"
ARGUMENTS = "wrong arguments and failing factories"


@contextlib.contextmanager
def _refusing_port() -> Iterator[int]:
    """A port that is taken, and on which nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield int(sock.getsockname()[1])


@check(CONNECT)
async def connect_by_host_and_send_200_kilobytes() -> None:
    message = os.urandom(200_000)
    async with pair(server=Echo) as both:
        both.client.write(message)
        assert await both.client_protocol.received(len(message)) == message
        both.client.close()
        assert await soon(both.client_protocol.lost) is None
        assert await soon(both.server_protocol.lost) is None
    assert both.client_protocol.calls == ["made", "data", "lost"], both.client_protocol.calls


@check(CONNECT)
async def connect_with_a_connected_socket() -> None:
    loop = asyncio.get_running_loop()
    async with serving(Echo) as (_, port):
        sock = socket.create_connection(("127.0.0.1", port))
        transport, protocol = await soon(loop.create_connection(Recorder, sock=sock))
        transport.write(b"hello")
        assert await protocol.received(5) == b"hello"
        transport.close()
        await soon(protocol.lost)
        assert sock.fileno() == -1


@check(CONNECT)
async def connect_from_a_local_address() -> None:
    loop = asyncio.get_running_loop()
    async with serving(Recorder) as (_, port):
        transport, _ = await soon(
            loop.create_connection(Recorder, "127.0.0.1", port, local_addr=("127.0.0.2", 0))
        )
        assert transport.get_extra_info("sockname")[0] == "127.0.0.2"
        transport.close()


@check(CONNECT)
async def refused_connection_raises() -> None:
    loop = asyncio.get_running_loop()
    with _refusing_port() as port:
        before = open_fds()
        error = await raises_async(
            ConnectionRefusedError, loop.create_connection(Recorder, "127.0.0.1", port)
        )
        assert "Connect call failed" in str(error)
        assert open_fds() == before


@check(EYEBALLS)
async def happy_eyeballs_reach_a_server_on_one_family() -> None:
    loop: Any = asyncio.get_running_loop()
    server_port = 0

    async def both_families(host: str, of_port: int, **options: Any) -> Any:
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", server_port, 0, 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server_port)),
        ]

    async with serving(Recorder) as (_, port):
        server_port = port
        loop.getaddrinfo = both_families
        transport, _ = await soon(
            loop.create_connection(Recorder, "either.test", port, happy_eyeballs_delay=0.05, interleave=1)
        )
        assert transport.get_extra_info("peername")[:2] == ("127.0.0.1", port)
        transport.close()


@check(EYEBALLS)
async def happy_eyeballs_keywords_on_localhost() -> None:
    loop = asyncio.get_running_loop()
    async with serving(Recorder) as (_, port):
        before = len(open_fds())
        transport, protocol = await soon(
            loop.create_connection(Recorder, "localhost", port, happy_eyeballs_delay=0.25)
        )
        transport.abort()
        await soon(protocol.lost)
        await until(lambda: len(open_fds()) <= before + 1)


@check(ALL_ERRORS, since=(3, 12))
async def all_errors_come_as_a_group() -> None:
    loop: Any = asyncio.get_running_loop()
    with _refusing_port() as port:
        group: Any = await raises_async(
            ExceptionGroup, loop.create_connection(Recorder, "127.0.0.1", port, all_errors=True)
        )
    assert [type(error) for error in group.exceptions] == [ConnectionRefusedError]


@check(NAMES)
async def getaddrinfo_and_getnameinfo() -> None:
    loop = asyncio.get_running_loop()
    literal = await loop.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)
    assert literal == socket.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM), literal
    by_name = await loop.getaddrinfo("localhost", "http", proto=socket.IPPROTO_TCP)
    assert sorted(by_name) == sorted(socket.getaddrinfo("localhost", "http", proto=socket.IPPROTO_TCP))
    assert await loop.getnameinfo(("127.0.0.1", 80), socket.NI_NUMERICHOST | socket.NI_NUMERICSERV) == (
        "127.0.0.1",
        "80",
    )
    await raises_async(
        socket.gaierror, loop.getaddrinfo("127.0.0.1", "no such service", type=socket.SOCK_STREAM)
    )


@check(NAMES)
async def getaddrinfo_of_literals_keeps_its_flags() -> None:
    loop = asyncio.get_running_loop()
    for arguments in (("::1", 443), ("127.0.0.1", "443"), (None, 443), ("127.0.0.1", None)):
        for options in (
            {},
            {"family": socket.AF_INET},
            {"type": socket.SOCK_DGRAM},
            {"flags": socket.AI_PASSIVE},
        ):
            try:
                wanted: Any = socket.getaddrinfo(*arguments, **options)
            except socket.gaierror as error:
                wanted = type(error)
            try:
                got: Any = await loop.getaddrinfo(*arguments, **options)
            except socket.gaierror as error:
                got = type(error)
            assert got == wanted, (arguments, options, got, wanted)


@check(ARGUMENTS)
async def create_connection_names_wrong_arguments() -> None:
    loop = asyncio.get_running_loop()
    with socket.socket() as sock:
        for options in (
            {},
            {"host": "127.0.0.1", "port": 1, "sock": sock},
            {"host": "127.0.0.1", "port": 1, "server_hostname": "x"},
            {"host": "127.0.0.1", "port": 1, "ssl_handshake_timeout": 1.0},
            {"sock": sock, "ssl": True},
        ):
            await raises_async(ValueError, loop.create_connection(Recorder, **options))  # type: ignore[call-overload]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagram:
        await raises_async(ValueError, loop.create_connection(Recorder, sock=datagram))


@check(ARGUMENTS)
async def failing_protocol_factory_raises_from_create_connection() -> None:
    loop = asyncio.get_running_loop()

    def factory() -> Any:
        raise LookupError("no protocol")

    async with serving(Recorder) as (_, port):
        await raises_async(LookupError, loop.create_connection(factory, "127.0.0.1", port))
