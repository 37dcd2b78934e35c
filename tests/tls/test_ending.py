"""How TLS connections end: said goodbye to, cut off, in time, and with everything that was written before."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import warnings
import weakref
from typing import Any

import pytest

from tests.streams import Recorder, reset
from tests.tls.peers import connect, fill


@pytest.mark.contract
def test_close_sends_close_notify_and_waits_for_the_peers(run: Any, side: str) -> None:
    async def main() -> None:
        protocol, peer = await connect(side=side)
        protocol.transport.close()
        protocol.transport.close()
        assert protocol.transport.is_closing()
        assert await peer.receive(1) == b""
        assert not protocol.lost.done()
        await peer.goodbye()
        assert await protocol.lost is None
        assert protocol.calls == ["made", "eof", "lost"]
        peer.sock.close()

    run(main())


@pytest.mark.contract
def test_close_sends_queued_data(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        message = os.urandom(3_000_000)
        protocol.transport.write(message)
        protocol.transport.write(b"end")
        protocol.transport.close()
        assert await peer.receive(len(message) + 100) == message + b"end"
        await peer.goodbye()
        assert await protocol.lost is None
        peer.sock.close()

    run(main())


@pytest.mark.contract
@pytest.mark.engines(
    "uring", "epoll", "asyncio"
)  # the fake one may still have a part of the handshake to send
def test_data_written_just_before_an_abort_arrives(run: Any, side: str) -> None:
    async def main() -> None:
        protocol, peer = await connect(side=side)
        await peer.send(b"x")
        await protocol.until(1)  # and all that came before: what is unread makes of the end a reset
        protocol.transport.write(b"last ")
        protocol.transport.write(b"words")
        protocol.transport.abort()
        assert await peer.receive(10) == b"last words"
        assert await protocol.lost is None
        assert protocol.calls == ["made", "data", "lost"]
        peer.sock.close()

    run(main())


@pytest.mark.contract
def test_close_notify_of_the_peer_ends_the_connection(run: Any, side: str) -> None:
    async def main() -> None:
        protocol, peer = await connect(side=side)
        await peer.send(b"last")
        await peer.goodbye()
        assert await protocol.lost is None
        assert protocol.received == b"last"
        assert protocol.calls[-2:] == ["eof", "lost"]
        peer.sock.close()

    run(main())


@pytest.mark.contract
def test_data_written_after_close_notify_of_the_peer_is_sent(run: Any) -> None:
    class Answering(Recorder):
        def eof_received(self) -> bool:
            self.transport.write(b"you too")
            return super().eof_received()

    async def main() -> None:
        protocol, peer = await connect(Answering)
        await peer.say_goodbye()
        assert await peer.receive(100) == b"you too"
        assert await protocol.lost is None
        peer.sock.close()

    run(main())


def test_data_written_after_an_end_without_close_notify_is_sent(run: Any) -> None:
    """asyncio drops it."""

    class Answering(Recorder):
        def eof_received(self) -> bool:
            self.transport.write(b"you too")
            return super().eof_received()

    async def main() -> None:
        protocol, peer = await connect(Answering)
        peer.end()
        assert await peer.receive(7) == b"you too"
        assert await protocol.lost is None
        peer.sock.close()

    run(main())


@pytest.mark.contract
def test_an_end_without_close_notify_ends_the_connection(run: Any, side: str) -> None:
    async def main() -> None:
        protocol, peer = await connect(side=side)
        await peer.send(b"last")
        peer.end()
        assert await protocol.lost is None
        assert protocol.received == b"last"
        assert protocol.calls[-2:] == ["eof", "lost"]
        peer.sock.close()

    run(main())


@pytest.mark.contract
def test_a_reset_ends_the_connection_with_an_error(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        reset(peer.sock)
        assert isinstance(await protocol.lost, ConnectionResetError)
        assert protocol.calls == ["made", "lost"]

    run(main())


@pytest.mark.contract
def test_abort_ends_the_connection_without_close_notify(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        protocol.transport.write(bytes(5_000_000))
        protocol.transport.abort()
        protocol.transport.abort()
        assert protocol.transport.is_closing()
        assert await protocol.lost is None
        assert protocol.calls == ["made", "lost"]
        peer.sock.close()

    run(main())


@pytest.mark.contract
@pytest.mark.parametrize("what", ["close", "abort"])
def test_data_received_may_close_or_abort_the_connection(run: Any, what: str) -> None:
    class Leaving(Recorder):
        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            getattr(self.transport, what)()

    async def main() -> None:
        protocol, peer = await connect(Leaving)
        await peer.send(b"go")
        if what == "close":
            assert await peer.receive(1) == b""
            await peer.goodbye()
        assert await protocol.lost is None
        assert (
            protocol.calls == ["made", "data", "eof", "lost"] if what == "close" else ["made", "data", "lost"]
        )
        peer.sock.close()

    run(main())


@pytest.mark.contract
def test_close_times_out_if_the_peer_sends_no_close_notify(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect(ssl_shutdown_timeout=0.01)
        protocol.transport.close()
        assert isinstance(await protocol.lost, TimeoutError)
        peer.sock.close()

    run(main())


@pytest.mark.contract
def test_close_times_out_if_the_peer_does_not_read(run: Any) -> None:
    async def main() -> None:
        protocol, peer = await connect(ssl_shutdown_timeout=0.01, family="unix")
        await fill(protocol, peer)
        protocol.transport.close()
        assert isinstance(await protocol.lost, TimeoutError)
        peer.sock.close()

    run(main())


@pytest.mark.parametrize("close", ["before", "after", "never"])
@pytest.mark.parametrize("goodbye", [False, True])
def test_a_peer_that_ends_but_does_not_read_causes_a_timeout(run: Any, close: str, goodbye: bool) -> None:
    """asyncio waits for ever, before Python 3.14."""

    async def main() -> None:
        protocol, peer = await connect(ssl_shutdown_timeout=0.01, family="unix")
        await fill(protocol, peer)
        if close == "before":
            protocol.transport.close()
        if goodbye:
            await peer.say_goodbye()
        peer.end()
        if close == "after":
            protocol.transport.close()
        assert isinstance(await protocol.lost, TimeoutError)
        peer.sock.close()

    run(main())


def test_data_that_arrives_after_close_is_dropped(run: Any) -> None:
    """asyncio ends such a connection with an error of OpenSSL's."""

    async def main() -> None:
        protocol, peer = await connect()
        protocol.transport.close()
        await peer.send(bytes(200_000))
        await peer.goodbye()
        assert await protocol.lost is None
        assert protocol.received == b""
        peer.sock.close()

    run(main())


@pytest.mark.parametrize("size", [10, 1_000_000])
def test_close_while_reading_is_paused_drops_unread_data_and_sends_written_data(run: Any, size: int) -> None:
    """What was not read is nobody's; what was written still leaves."""

    async def main() -> None:
        protocol, peer = await connect()
        protocol.transport.pause_reading()
        sending = asyncio.ensure_future(peer.send(bytes(size)))
        limit = min(size, protocol.transport.get_read_buffer_limits()[1])
        while protocol.transport.get_read_buffer_size() < limit:
            await asyncio.sleep(0)
        protocol.transport.write(b"bye")
        protocol.transport.close()
        await sending
        assert await peer.receive(3) == b"bye"
        await peer.goodbye()
        assert await protocol.lost is None
        assert protocol.received == b""
        peer.sock.close()

    run(main())


@pytest.mark.contract
def test_writes_after_close_are_ignored_and_many_of_them_are_logged(
    run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        protocol, peer = await connect()
        protocol.transport.close()
        protocol.transport.write(b"too late")
        assert await peer.receive(1) == b""
        peer.sock.close()
        await protocol.lost
        assert not caplog.records
        for _ in range(6):
            protocol.transport.write(b"much too late")

    with caplog.at_level(logging.WARNING, "asyncio"):
        run(main())
    assert {record.message for record in caplog.records} == {"SSL connection is closed"}


@pytest.mark.contract
def test_a_tls_connection_cannot_be_half_closed(run: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        protocol, peer = await connect(lambda: Recorder(keep_open=True))
        assert not protocol.transport.can_write_eof()
        with pytest.raises(NotImplementedError):
            protocol.transport.write_eof()
        await peer.goodbye()
        assert await protocol.lost is None
        peer.sock.close()

    with caplog.at_level(logging.WARNING, "asyncio"):
        run(main())
    assert [record.message for record in caplog.records] == [
        "returning true from eof_received() has no effect when using ssl"
    ]


@pytest.mark.contract
def test_an_exception_of_eof_received_is_reported(run: Any, reports: list[dict[str, Any]]) -> None:
    class Failing(Recorder):
        def eof_received(self) -> bool:
            raise ZeroDivisionError

    async def main() -> None:
        protocol, peer = await connect(Failing)
        await peer.say_goodbye()
        assert isinstance(await protocol.lost, ZeroDivisionError)
        peer.sock.close()

    run(main())
    assert [report["message"] for report in reports] == ["Error calling eof_received()"]
    reports.clear()


@pytest.mark.contract
def test_callbacks_run_in_the_context_that_made_the_connection(run: Any) -> None:
    import contextvars

    colour = contextvars.ContextVar("colour", default="none")
    seen: list[str] = []

    class Looking(Recorder):
        def data_received(self, data: bytes) -> None:
            seen.append(colour.get())
            super().data_received(data)

        def eof_received(self) -> bool:
            seen.append(colour.get())
            return super().eof_received()

        def connection_lost(self, error: Exception | None) -> None:
            seen.append(colour.get())
            super().connection_lost(error)

    async def main() -> None:
        colour.set("red")
        protocol, peer = await connect(Looking)
        colour.set("blue")
        await peer.send(b"some")
        await protocol.until(4)
        await peer.goodbye()
        await protocol.lost
        peer.sock.close()

    run(main())
    assert len(seen) >= 3 and set(seen) == {"red"}


def test_an_unclosed_transport_emits_a_resource_warning(new_loop: Any) -> None:
    loop = new_loop()
    loop.set_debug(True)
    protocol, peer = loop.run_until_complete(connect())
    loop.close()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del protocol
        gc.collect()
    peer.sock.close()
    said = [str(warning.message) for warning in caught if warning.category is ResourceWarning]
    (report,) = [message for message in said if message.startswith("unclosed transport <TlsTransport open")]
    assert "made at (most recent call last)" in report and "in create_connection" in report


@pytest.mark.contract
def test_connections_of_a_closed_server_end_with_close_notify(loop: Any, run: Any) -> None:
    from tests.tls.peers import Peer, client_context, server_context

    async def main() -> None:
        protocols: list[Any] = []

        def factory() -> Recorder:
            protocols.append(Recorder())
            return protocols[-1]

        server = await loop.create_server(factory, "127.0.0.1", 0, ssl=server_context())
        sock = socket.socket()
        sock.setblocking(False)
        await loop.sock_connect(sock, server.sockets[0].getsockname())
        peer = Peer(sock, client_context(), False)
        await peer.handshake()
        await peer.send(b"here")
        while not protocols:
            await asyncio.sleep(0)
        (protocol,) = protocols
        await protocol.until(4)
        server.close()
        protocol.transport.close()
        assert await peer.receive(1) == b""
        await peer.goodbye()
        assert await protocol.lost is None
        sock.close()
        await server.wait_closed()

    run(main())


def test_a_transport_closed_twice_releases_its_context(run: Any) -> None:
    """Even by a protocol that keeps its transport, and that somebody keeps."""
    from tests.tls.peers import client_context

    async def main() -> None:
        context = client_context()
        protocol, peer = await connect(context=context)
        context = weakref.ref(context)  # type: ignore[assignment]
        protocol.transport.close()
        protocol.transport.close()
        assert protocol.transport.get_extra_info("sslcontext") is not None
        await peer.receive(1)
        await peer.goodbye()
        await protocol.lost
        assert context() is None  # type: ignore[operator]
        assert protocol.transport.get_extra_info("sslcontext") is None
        assert protocol.transport.get_extra_info("peername") == peer.sock.getsockname()
        assert protocol.transport.get_write_buffer_size() == protocol.transport.get_read_buffer_size() == 0
        protocol.transport.close()
        protocol.transport.abort()
        protocol.transport.write(b"too late")
        peer.sock.close()

    run(main())
