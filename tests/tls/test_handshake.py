"""Handshakes: what both ends learn, and every way in which one does not come about."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any

import pytest

from tests.streams import Recorder, pair, reset
from tests.tls.peers import Peer, begin, client_context, connect, peer_of, server_context


@pytest.mark.contract
@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
@pytest.mark.parametrize("family", ["tcp", "unix"])
def test_both_tls_versions_carry_data_over_tcp_and_unix_sockets(
    run: Any, side: str, family: str, version: str
) -> None:
    async def main() -> None:
        protocol, peer = await connect(side=side, family=family, version=version)
        with peer.sock:
            transport = protocol.transport
            assert transport.get_extra_info("ssl_object").version() == version.replace("_", ".")
            await peer.send(b"ping")
            assert await protocol.until(4) == b"ping"
            transport.write(b"pong")
            assert await peer.receive(4) == b"pong"
            transport.close()
            await peer.goodbye()
            assert await protocol.lost is None

    run(main())


@pytest.mark.contract
def test_get_extra_info_describes_the_tls_connection(run: Any) -> None:
    async def main() -> None:
        context = client_context()
        protocol, peer = await connect(context=context)
        with peer.sock:
            info = protocol.transport.get_extra_info
            assert isinstance(info("ssl_object"), ssl.SSLObject)
            assert info("sslcontext") is context
            assert info("cipher") == info("ssl_object").cipher()
            assert info("compression") is None
            assert ("commonName", "localhost") in info("peercert")["subject"][0]
            assert info("peername") == peer.sock.getsockname()
            assert info("sockname") == peer.sock.getpeername()
            assert info("socket").fileno() >= 0
            assert info("no such thing", 5) == 5
            protocol.transport.abort()
            assert await protocol.lost is None
            assert info("sslcontext") is context

    run(main())


@pytest.mark.contract
def test_a_client_sends_its_server_name_and_agrees_on_a_protocol(run: Any) -> None:
    async def main() -> None:
        names: list[Any] = []
        left, right = pair()
        peer = peer_of(right, "client")
        peer.tls.context.set_alpn_protocols(["h2", "http/1.1"])
        peer.tls.context.sni_callback = lambda _, name, __: names.append(name)
        context = client_context()
        context.set_alpn_protocols(["http/1.1"])
        made = asyncio.ensure_future(begin(Recorder, left, "client", context))
        with right:
            await peer.handshake()
            transport, protocol = await made
            assert names == ["localhost"]
            assert transport.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
            transport.abort()
            await protocol.lost

    run(main())


@pytest.mark.contract
def test_a_server_sees_the_certificate_of_the_client(run: Any) -> None:
    async def main() -> None:
        left, right = pair()
        peer = Peer(right, client_context(with_certificate=True), False)
        made = asyncio.ensure_future(
            begin(Recorder, left, "server", server_context(verify_mode=ssl.CERT_REQUIRED))
        )
        with right:
            await peer.handshake()
            transport, protocol = await made
            assert ("commonName", "localhost") in transport.get_extra_info("peercert")["subject"][0]
            transport.abort()
            await protocol.lost

    run(main())


@pytest.mark.contract
def test_a_client_sends_its_certificate_after_the_handshake_on_request(run: Any) -> None:
    """TLS 1.3: the server asks in mid-stream, and the client answers from within a read."""

    async def main() -> None:
        left, right = pair()
        peer = Peer(right, server_context(post_handshake_auth=True, verify_mode=ssl.CERT_OPTIONAL), True)
        context = client_context(with_certificate=True, post_handshake_auth=True)
        made = asyncio.ensure_future(begin(Recorder, left, "client", context))
        with right:
            await peer.handshake()
            transport, protocol = await made
            assert not peer.tls.getpeercert()
            peer.tls.context.verify_mode = ssl.CERT_REQUIRED
            peer.tls.verify_client_post_handshake()
            await peer.send(b"before")
            assert await protocol.until(6) == b"before"
            transport.write(b"after")
            assert await peer.receive(5) == b"after"
            assert peer.tls.getpeercert()
            transport.abort()
            await protocol.lost

    run(main())


class Never(asyncio.Protocol):
    """No connection is made, so none is lost either."""

    def connection_made(self, transport: Any) -> None:
        raise AssertionError("connection_made")

    def connection_lost(self, error: Exception | None) -> None:
        raise AssertionError("connection_lost")


async def until_closed(sock: socket.socket) -> None:
    """The end of the connection, whatever comes before it, seen by the other end."""
    loop = asyncio.get_running_loop()
    try:
        while await loop.sock_recv(sock, 4096):
            pass
    except ConnectionError:
        pass


@pytest.mark.contract
@pytest.mark.parametrize("wrong", ["authority", "name"])
def test_a_wrong_certificate_raises_an_error_in_the_caller(run: Any, wrong: str, reports: list[Any]) -> None:
    async def main() -> None:
        left, right = pair()
        peer = peer_of(right, "client")
        context = ssl.create_default_context() if wrong == "authority" else client_context()
        name = "localhost" if wrong == "authority" else "elsewhere.test"
        made = asyncio.ensure_future(begin(Never, left, "client", context, server_hostname=name))
        with right:
            shaking = asyncio.ensure_future(peer.handshake())
            with pytest.raises(ssl.SSLCertVerificationError):
                await made
            await asyncio.gather(shaking, return_exceptions=True)
            await until_closed(right)

    run(main())
    assert reports == []


@pytest.mark.contract
def test_a_silent_peer_makes_the_handshake_time_out(run: Any, side: str) -> None:
    async def main() -> None:
        left, right = pair()
        with right:
            with pytest.raises(
                ConnectionAbortedError, match=r"SSL handshake is taking longer than 0\.01 seconds"
            ):
                await begin(Never, left, side, ssl_handshake_timeout=0.01)
            await until_closed(right)

    run(main())


@pytest.mark.contract
@pytest.mark.parametrize("how", ["end", "reset"])
def test_a_peer_that_disconnects_during_the_handshake_raises_connection_error(
    run: Any, side: str, how: str
) -> None:
    async def main() -> None:
        left, right = pair()
        with right:
            made = asyncio.ensure_future(begin(Never, left, side))
            if side == "client":
                await asyncio.get_running_loop().sock_recv(right, 1)
            if how == "end":
                right.shutdown(socket.SHUT_WR)
            else:
                reset(right)
            with pytest.raises(ConnectionError):
                await made
            if how == "end":
                await until_closed(right)

    run(main())


@pytest.mark.contract
def test_a_peer_that_does_not_speak_tls_is_refused(run: Any, side: str) -> None:
    async def main() -> None:
        left, right = pair()
        with right:
            made = asyncio.ensure_future(begin(Never, left, side))
            await asyncio.get_running_loop().sock_sendall(right, b"GET / HTTP/1.0\r\n\r\n" * 9)
            with pytest.raises(ssl.SSLError):
                await made
            await until_closed(right)

    run(main())


@pytest.mark.contract
def test_a_cancelled_handshake_closes_the_connection(run: Any, side: str) -> None:
    async def main() -> None:
        left, right = pair()
        with right:
            made = asyncio.ensure_future(begin(Never, left, side))
            if side == "client":
                await asyncio.get_running_loop().sock_recv(right, 1)
            await asyncio.sleep(0)
            made.cancel()
            with pytest.raises(asyncio.CancelledError):
                await made
            await until_closed(right)

    run(main())


def test_a_handshake_cancelled_before_it_began_closes_the_connection(run: Any, side: str) -> None:
    async def main() -> None:
        left, right = pair()
        with right:
            made = asyncio.ensure_future(begin(Never, left, side))
            await asyncio.sleep(0)
            made.cancel()
            with pytest.raises(asyncio.CancelledError):
                await made
            await until_closed(right)

    run(main())


@pytest.mark.contract
@pytest.mark.parametrize("debug", [False, True])
def test_a_server_reports_failed_handshakes_in_debug_mode_only(
    loop: Any, run: Any, reports: list[dict[str, Any]], debug: bool
) -> None:
    """A peer can cause any number of them."""
    loop.set_debug(debug)

    async def main() -> None:
        server = await loop.create_server(Never, "127.0.0.1", 0, ssl=server_context())
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"no TLS at all\r\n" * 9)
        try:
            await reader.read()
        except ConnectionError:
            pass
        writer.close()
        server.close()
        await server.wait_closed()

    run(main())
    messages = {report["message"] for report in reports}
    assert messages == ({"Error on transport creation for incoming connection"} if debug else set())
    for report in reports:
        assert isinstance(report["exception"], ssl.SSLError)
    reports.clear()


@pytest.mark.contract
def test_an_exception_of_connection_made_ends_the_connection(run: Any, reports: list[dict[str, Any]]) -> None:
    class Failing(Recorder):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            raise ZeroDivisionError

    async def main() -> None:
        left, right = pair()
        peer = peer_of(right, "client")
        protocol = Failing()
        made = asyncio.ensure_future(begin(lambda: protocol, left, "client"))
        with right:
            shaking = asyncio.ensure_future(peer.handshake())
            with pytest.raises(ZeroDivisionError):
                await made
            await asyncio.gather(shaking, return_exceptions=True)
            assert isinstance(await protocol.lost, ZeroDivisionError)

    run(main())
    assert [type(report["exception"]) for report in reports] == [ZeroDivisionError]
    reports.clear()


@pytest.mark.contract
@pytest.mark.parametrize("name", ["ssl_handshake_timeout", "ssl_shutdown_timeout"])
@pytest.mark.parametrize("value", [0, -1])
def test_timeouts_that_are_not_positive_are_refused(run: Any, name: str, value: int) -> None:
    async def main() -> None:
        left, right = pair()
        with left, right:
            with pytest.raises(ValueError, match=f"{name} should be a positive number, got {value}"):
                await begin(Recorder, left, "client", **{name: value})

    run(main())
