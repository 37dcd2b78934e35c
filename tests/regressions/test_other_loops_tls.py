"""Defects reported against other loops: TLS that loses data around a pause, forgets its settings, or grows."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import streams
from tests.tls.peers import client_context, connect, fill, leave, peer_of, server_context


@pytest.fixture
def run(loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
    return lambda main: loop.run_until_complete(asyncio.wait_for(main, 60))


@pytest.mark.parametrize("goodbye", [False, True])
@pytest.mark.parametrize("size", [10, 400_000])
def test_data_before_the_end_waits_for_a_paused_reader(run: Any, size: int, goodbye: bool) -> None:
    """uvloop #661 #385, cpython #89322: the end overtook what was not read yet, which was lost; or data came paused."""

    async def main() -> None:
        protocol, peer = await connect(family="unix")
        message = os.urandom(size)
        protocol.transport.pause_reading()
        sending = asyncio.ensure_future(send_and_end(peer, message, goodbye))
        for _ in range(5):
            await streams.settled(None)
        assert protocol.calls == ["made"]
        protocol.transport.resume_reading()
        assert await protocol.lost is None
        await sending
        assert protocol.received == message
        assert protocol.calls[-2:] == ["eof", "lost"]
        peer.sock.close()

    run(main())


async def send_and_end(peer: Any, message: bytes, goodbye: bool) -> None:
    await peer.send(message)
    if goodbye:
        await peer.say_goodbye()
    peer.end()


def test_start_tls_works_while_the_writer_is_paused(run: Any) -> None:
    """uvloop #564, cpython #109051: an assertion failed, or the writer waited for ever: it is resumed, once."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        protocol, sock = await streams.connect(family="unix")
        plain = os.urandom(1_000_000)
        protocol.transport.write(plain)
        assert protocol.flow == ["pause"]
        upgrading = asyncio.ensure_future(
            loop.start_tls(protocol.transport, protocol, client_context(), server_hostname="localhost")
        )
        await streams.settled(None)
        assert await streams.receive(sock, len(plain)) == plain
        peer = peer_of(sock, "client")
        await peer.handshake()
        protocol.transport = await upgrading
        assert protocol.flow == ["pause", "resume"]
        protocol.flow.clear()
        written = await fill(protocol, peer)
        assert await peer.receive(written) == bytes(written)
        await protocol.when(lambda: protocol.flow == ["pause", "resume"])
        await leave(protocol, peer)

    run(main())


@pytest.mark.contract
@pytest.mark.parametrize("method", ["write", "writelines"])
def test_writelines_pauses_the_writer_as_write_does(run: Any, method: str) -> None:
    """cpython #127655: writelines went past the limits, so a peer that does not read filled the memory."""

    async def main() -> None:
        protocol, peer = await connect(family="unix")
        pieces = [bytes(200_000)] * 10
        for _ in range(3):  # what the layer below takes first is no longer the layer's own
            if method == "write":
                protocol.transport.write(b"".join(pieces))
            else:
                protocol.transport.writelines(pieces)
            await asyncio.sleep(0)
        assert protocol.flow == ["pause"]
        assert await peer.receive(6_000_000) == bytes(6_000_000)
        await protocol.when(lambda: protocol.flow == ["pause", "resume"])
        await leave(protocol, peer)

    run(main())


@pytest.mark.contract
def test_the_settings_of_the_context_are_obeyed(run: Any, side: str, tmp_path: Path) -> None:
    """rsloop #68: ciphers, versions and the key log were ignored, as the context was replaced by another library's."""

    async def main() -> None:
        context = server_context() if side == "server" else client_context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE-ECDSA-CHACHA20-POLY1305")
        context.keylog_filename = str(tmp_path / "keys")
        context.set_alpn_protocols(["spoken"])
        protocol, peer = await connect(side=side, context=context)
        tls = protocol.transport.get_extra_info("ssl_object")
        assert tls.version() == "TLSv1.2"
        assert tls.cipher()[0] == protocol.transport.get_extra_info("cipher")[0]
        assert tls.cipher()[0] == "ECDHE-ECDSA-CHACHA20-POLY1305"
        assert tls.context is context
        assert (tmp_path / "keys").read_text().startswith("# TLS secrets log file")
        await leave(protocol, peer)
        context.keylog_filename = None

    run(main())


@pytest.fixture(params=["client", "server"])
def side(request: pytest.FixtureRequest) -> str:
    """Which end is under test."""
    name: str = request.param
    return name


GROWS = """
import asyncio, gc, resource, sys
from compat.behaviours.helpers import client_tls, server_tls
import uringloop

async def talk(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()

async def once(port, ours):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=ours, server_hostname="localhost")
    writer.write(bytes(20_000))
    await reader.readexactly(20_000)
    writer.close()
    await writer.wait_closed()

def memory():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

async def main():
    server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=server_tls())
    port, ours, before = server.sockets[0].getsockname()[1], client_tls(), None
    for round in range(6):
        for _ in range(20):
            await asyncio.gather(*[once(port, ours) for _ in range(10)])
        before = before or memory()
    assert memory() - before < 4_000_000, (before, memory())
    server.close()

uringloop.run(main())
"""


@pytest.mark.engines("uring", "epoll")
def test_memory_does_not_grow_with_the_connections(engine: str, program: Any) -> None:
    """uvloop #565 #220, cpython #109534: each connection left some; kept, one end's objects alone were 20 megabytes."""
    program(GROWS)
