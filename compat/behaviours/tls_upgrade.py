"""start_tls in both directions, and TLS inside TLS."""

from __future__ import annotations

import asyncio
import os
import ssl
from typing import Any

from compat.behaviours import check
from compat.behaviours.helpers import Recorder, client_tls, pair, raises_async, server_tls, soon, until
from compat.behaviours.protocols import BufferedViews

UPGRADE = "start_tls; BufferedProtocol under TLS"


async def _upgrade(both: Any, client: Any, server: Any) -> tuple[Any, Any]:
    """Both ends of a connection switch to TLS with these protocols."""
    loop = asyncio.get_running_loop()
    both.client.set_protocol(client)
    both.server.set_protocol(server)
    serving = asyncio.create_task(loop.start_tls(both.server, server, server_tls(), server_side=True))
    client_transport = await soon(
        loop.start_tls(both.client, client, client_tls(), server_hostname="localhost")
    )
    server_transport = await soon(serving)
    assert client_transport is not None and server_transport is not None
    for protocol, transport in ((client, client_transport), (server, server_transport)):
        protocol.transport = transport
    return client_transport, server_transport


@check(UPGRADE)
async def start_tls_upgrades_both_ends() -> None:
    message = os.urandom(500_000)
    async with pair() as both:
        both.client.write(b"plain")
        await both.server_protocol.received(5)
        client, server = await _upgrade(both, both.client_protocol, both.server_protocol)
        assert isinstance(client.get_extra_info("ssl_object"), ssl.SSLObject)
        client.write(message)
        await until(lambda: len(both.server_protocol.data) == 5 + len(message))
        assert bytes(both.server_protocol.data[5:]) == message
        server.write(b"back")
        assert await both.client_protocol.received(4) == b"back"
        client.close()
        await soon(both.client_protocol.lost)
        await soon(both.server_protocol.lost)


@check(UPGRADE)
async def start_tls_with_buffered_protocols() -> None:
    message = os.urandom(300_000)
    async with pair(client=BufferedViews, server=BufferedViews) as both:
        client, _server = await _upgrade(both, both.client_protocol, both.server_protocol)
        client.write(message)
        await until(lambda: len(both.server_protocol.data) == len(message))
        assert bytes(both.server_protocol.data) == message
        client.close()
        await soon(both.client_protocol.lost)


@check(UPGRADE)
async def start_tls_after_writing_was_paused() -> None:
    async with pair() as both:
        both.server.pause_reading()
        both.client.write(bytes(20_000_000))
        assert both.client_protocol.calls[-1] == "pause"
        both.server.resume_reading()
        await both.server_protocol.received(20_000_000)
        await until(lambda: both.client_protocol.calls[-1] == "resume")
        both.server_protocol.data.clear()
        client, _server = await _upgrade(both, both.client_protocol, both.server_protocol)
        client.write(bytes(5_000_000))
        await until(lambda: len(both.server_protocol.data) == 5_000_000)
        assert both.client_protocol.calls[-1] == "resume"


@check(UPGRADE)
async def stream_writers_start_tls() -> None:
    done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readline() == b"starttls\n"
        writer.write(b"go\n")
        await writer.drain()
        await writer.start_tls(server_tls())
        done.set_result(await reader.readexactly(200_000))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"starttls\n")
    assert await soon(reader.readline()) == b"go\n"
    await soon(writer.start_tls(client_tls(), server_hostname="localhost"))
    message = os.urandom(200_000)
    writer.write(message)
    assert await soon(done) == message
    writer.close()
    server.close()


@check(UPGRADE)
async def tls_inside_tls() -> None:
    message = os.urandom(300_000)
    options = {"ssl": client_tls(), "server_hostname": "localhost"}
    async with pair(client_options=options, ssl=server_tls()) as both:
        client, server = await _upgrade(both, both.client_protocol, both.server_protocol)
        client.write(message)
        await until(lambda: len(both.server_protocol.data) == len(message))
        assert bytes(both.server_protocol.data) == message
        server.write(b"answer")
        assert await both.client_protocol.received(6) == b"answer"
        client.close()
        await soon(both.client_protocol.lost)


@check(UPGRADE)
async def wrong_start_tls_arguments_are_refused() -> None:
    loop: Any = asyncio.get_running_loop()
    async with pair() as both:
        await raises_async(TypeError, loop.start_tls(both.client, both.client_protocol, None))
        await raises_async(TypeError, loop.start_tls(object(), both.client_protocol, client_tls()))
        both.client.write(b"unharmed")
        assert await both.server_protocol.received(8) == b"unharmed"


@check(UPGRADE)
async def failed_start_tls_raises_and_closes() -> None:
    loop = asyncio.get_running_loop()
    contexts: list[Any] = []
    loop.set_exception_handler(lambda _, context: contexts.append(context))

    class Garbage(Recorder):
        def data_received(self, data: bytes) -> None:
            self.transport.write(b"this is no TLS at all\n" * 10)

    async with pair(server=Garbage) as both:
        await raises_async(
            ssl.SSLError,
            soon(
                loop.start_tls(both.client, both.client_protocol, client_tls(), server_hostname="localhost")
            ),
        )
        await soon(both.server_protocol.lost)
    loop.set_exception_handler(None)
