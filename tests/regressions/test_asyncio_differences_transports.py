"""What asyncio's transports do at the edges: on a closed loop, with what is no bytes, with a protocol that fails."""

from __future__ import annotations

import array
import asyncio
import gc
import socket
import warnings
from typing import Any

import pytest

from tests.streams import Recorder, connect, pair, turns
from tests.tls import peers


@pytest.mark.contract
@pytest.mark.parametrize("method", ["resume_reading", "close", "abort"])
def test_methods_of_a_transport_raise_if_they_need_the_closed_loop(loop: Any, method: str) -> None:
    protocol, peer = loop.run_until_complete(connect(family="unix"))
    loop.close()
    transport = protocol.transport
    transport.pause_reading()
    with pytest.raises(RuntimeError, match="Event loop is closed"):
        getattr(transport, method)()
    assert transport.is_closing() is (method != "resume_reading")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        del protocol, transport
        gc.collect()
    peer.close()


@pytest.mark.contract
def test_an_exception_of_connection_made_is_reported_with_its_name(loop: Any) -> None:
    told: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda loop, context: told.append(context))

    class Failing(Recorder):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            transport.close()
            raise ValueError

    async def main() -> None:
        protocol = Failing()
        server = await loop.create_server(lambda: protocol, "127.0.0.1", 0)
        with socket.create_connection(server.sockets[0].getsockname()):
            await protocol.lost
        server.close()

    loop.run_until_complete(asyncio.wait_for(main(), 10))
    assert [type(context["exception"]) for context in told] == [ValueError]
    assert "Failing.connection_made(" in told[0]["message"]
    told.clear()


def test_a_factory_that_returns_none_ends_the_connection_with_one_report(loop: Any) -> None:
    """asyncio's loop leaves it open, and says so in debug mode only."""
    told: list[str] = []
    loop.set_exception_handler(lambda loop, context: told.append(context["message"]))

    async def main() -> None:
        server = await loop.create_server(lambda: None, "127.0.0.1", 0)
        with socket.create_connection(server.sockets[0].getsockname()) as peer:
            peer.setblocking(False)
            assert await loop.sock_recv(peer, 1) == b""
        server.close()

    loop.run_until_complete(asyncio.wait_for(main(), 10))
    assert told == ["Error on transport creation for incoming connection"]


@pytest.mark.contract
@pytest.mark.parametrize("tls", [False, True])
def test_write_takes_bytes_bytearrays_and_memoryviews_only(loop: Any, tls: bool) -> None:
    async def main() -> None:
        protocol, peer = await (peers.connect() if tls else connect())
        for wrong in (array.array("I", [1]), 5, None, "text"):
            with pytest.raises(TypeError, match=r"bytes-like|bytes, bytearray"):
                protocol.transport.write(wrong)
        await peers.leave(protocol, peer) if tls else await leave(protocol, peer)

    loop.run_until_complete(asyncio.wait_for(main(), 10))


async def leave(protocol: Any, peer: socket.socket) -> None:
    protocol.transport.abort()
    peer.close()
    await protocol.lost


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([b"a", 5], "sequence item 1: expected a bytes-like object, int found"),
        (None, "can only join an iterable"),
        ("text", "sequence item 0: expected a bytes-like object, str found"),
    ],
)
def test_writelines_raises_the_error_of_join(loop: Any, wrong: Any, message: str, tls: bool) -> None:
    """asyncio's loops until Python 3.11; later ones say it in other words."""

    async def main() -> None:
        protocol, peer = await (peers.connect() if tls else connect())
        with pytest.raises(TypeError, match=message):
            protocol.transport.writelines(wrong)
        await peers.leave(protocol, peer) if tls else await leave(protocol, peer)

    loop.run_until_complete(asyncio.wait_for(main(), 10))


@pytest.mark.contract
def test_a_high_mark_lowered_after_a_write_does_not_pause_if_the_socket_takes_it(loop: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        protocol.transport.write(b"some bytes")
        protocol.transport.set_write_buffer_limits(high=0)
        await turns()
        assert protocol.flow == []
        await leave(protocol, peer)

    loop.run_until_complete(asyncio.wait_for(main(), 10))


def test_a_failed_sock_sendall_releases_the_callers_buffer(loop: Any) -> None:
    """Whatever keeps the traceback; asyncio's loop does only where none is kept."""
    left, right = pair("unix")
    data = bytearray(3_000_000)

    async def main() -> None:
        sending = asyncio.ensure_future(loop.sock_sendall(left, data))
        await asyncio.sleep(0)
        with pytest.raises(BufferError):
            data.append(1)
        right.close()
        try:
            await sending
        except BrokenPipeError:
            pass

    loop.run_until_complete(asyncio.wait_for(main(), 10))
    data.append(1)
    left.close()


def test_datagrams_after_close_are_dropped_and_many_of_them_are_logged(
    loop: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """asyncio's unconnected endpoint fails with an AttributeError of its own there."""

    async def main() -> None:
        transport, _ = await loop.create_datagram_endpoint(
            asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0)
        )
        address = transport.get_extra_info("sockname")
        transport.close()
        await turns()
        for _ in range(7):
            transport.sendto(b"late", address)

    loop.run_until_complete(asyncio.wait_for(main(), 10))
    assert "socket.send() raised exception." in caplog.text
