"""TLS connections from the start."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import tempfile
from pathlib import Path
from typing import Any

from compat.behaviours import check
from compat.behaviours.helpers import (
    Echo,
    Recorder,
    client_tls,
    collected_errors,
    pair,
    raises_async,
    server_tls,
    serving,
    soon,
    until,
)
from compat.behaviours.protocols import BufferedViews

ECHO = "TLS echo 300 KB over TCP and unix"
INFO = "TLS extra_info (ssl_object, cipher, peercert), ALPN, SNI, client certs"
FAILURES = "TLS verify -> SSLCertVerificationError, handshake and shutdown timeouts"
ENDS = "TLS peers that drop, close or pause"


def client_options(**options: Any) -> dict[str, Any]:
    return {"ssl": client_tls(), "server_hostname": "localhost", **options}


@check(ECHO)
async def tls_echo_over_tcp() -> None:
    message = os.urandom(300_000)
    async with pair(server=Echo, client_options=client_options(), ssl=server_tls()) as both:
        both.client.write(message)
        assert await both.client_protocol.received(len(message)) == message
        both.client.writelines([b"a", b"b"])
        await both.client_protocol.received(len(message) + 2)
        assert not both.client.can_write_eof()
        both.client.close()
        assert await soon(both.client_protocol.lost) is None
        assert await soon(both.server_protocol.lost) is None


@check(ECHO)
async def tls_echo_over_unix() -> None:
    loop: Any = asyncio.get_running_loop()
    message = os.urandom(300_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "socket"
        server = await loop.create_unix_server(Echo, path, ssl=server_tls())
        transport, protocol = await soon(loop.create_unix_connection(Recorder, path, **client_options()))
        transport.write(message)
        assert await protocol.received(len(message)) == message
        transport.close()
        assert await soon(protocol.lost) is None
        server.close()


@check(ECHO)
async def tls_close_flushes_what_is_queued() -> None:
    message = os.urandom(3_000_000)
    async with pair(client_options=client_options(), ssl=server_tls()) as both:
        both.client.write(message)
        both.client.close()
        await soon(both.server_protocol.lost)
        assert bytes(both.server_protocol.data) == message
        assert "eof" in both.server_protocol.calls


@check(ECHO)
async def buffered_protocol_under_tls() -> None:
    message = os.urandom(200_000)
    options = {"server": BufferedViews, "client_options": client_options(), "ssl": server_tls()}
    async with pair(**options) as both:  # type: ignore[arg-type]
        both.client.write(message)
        await until(lambda: len(both.server_protocol.data) == len(message))
        assert bytes(both.server_protocol.data) == message


@check(INFO)
async def tls_extra_info() -> None:
    server_context, client_context = server_tls(), client_tls()
    options = {"ssl": client_context, "server_hostname": "localhost"}
    async with pair(client_options=options, ssl=server_context) as both:
        info = both.client.get_extra_info
        assert isinstance(info("ssl_object"), ssl.SSLObject)
        assert info("sslcontext") is client_context
        assert info("cipher")[1].startswith("TLS")
        assert info("compression") is None
        assert info("peercert")["subject"][0][0] == ("commonName", "localhost")
        assert info("peername") == both.server.get_extra_info("sockname")
        assert info("socket").family == socket.AF_INET
        assert both.server.get_extra_info("sslcontext") is server_context
        assert isinstance(both.client, asyncio.Transport)


@check(INFO)
async def alpn_and_sni_are_negotiated() -> None:
    server_context, client_context = server_tls(), client_tls()
    server_context.set_alpn_protocols(["h2", "http/1.1"])
    client_context.set_alpn_protocols(["http/1.1"])
    names: list[Any] = []
    server_context.sni_callback = lambda _, name, __: names.append(name)
    options = {"ssl": client_context, "server_hostname": "localhost"}
    async with pair(client_options=options, ssl=server_context) as both:
        for end in (both.client, both.server):
            assert end.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
    assert names == ["localhost"]


@check(INFO)
async def client_certificate_reaches_the_server() -> None:
    context = server_tls(verify_mode=ssl.CERT_REQUIRED)
    options = client_options(ssl=client_tls(with_certificate=True))
    async with pair(client_options=options, ssl=context) as both:
        assert both.server.get_extra_info("peercert")["subject"][0][0] == ("commonName", "localhost")


@check(FAILURES)
async def unknown_authority_is_refused() -> None:
    loop: Any = asyncio.get_running_loop()
    with collected_errors():
        async with serving(Recorder, ssl=server_tls()) as (_, port):
            await raises_async(
                ssl.SSLCertVerificationError,
                soon(
                    loop.create_connection(
                        Recorder,
                        "127.0.0.1",
                        port,
                        ssl=ssl.create_default_context(),
                        server_hostname="localhost",
                    )
                ),
            )
            await raises_async(
                ssl.SSLCertVerificationError,
                soon(
                    loop.create_connection(
                        Recorder, "127.0.0.1", port, ssl=client_tls(), server_hostname="other.test"
                    )
                ),
            )


@check(FAILURES)
async def silent_server_ends_the_handshake_in_time() -> None:
    loop: Any = asyncio.get_running_loop()
    async with serving(Recorder) as (_, port):
        error = await raises_async(
            ConnectionAbortedError,
            soon(
                loop.create_connection(
                    Recorder, "127.0.0.1", port, **client_options(ssl_handshake_timeout=0.3)
                )
            ),
        )
        assert "SSL handshake is taking longer than" in str(error)


@check(FAILURES)
async def silent_client_is_dropped_in_time() -> None:
    with collected_errors():
        async with serving(Recorder, ssl=server_tls(), ssl_handshake_timeout=0.3) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await soon(reader.read()) == b""
            writer.close()


@check(FAILURES)
async def peer_that_never_says_goodbye_is_dropped_in_time() -> None:
    with collected_errors():
        transport, protocol = await _open_to_silent()
        transport.close()
        await soon(protocol.lost)  # the default is thirty seconds


async def _open_to_silent() -> tuple[Any, Any]:
    """A TLS client of a server thread that shakes hands and then does nothing at all."""
    loop: Any = asyncio.get_running_loop()
    listener = socket.create_server(("127.0.0.1", 0))
    kept: list[Any] = []

    def serve() -> None:
        sock, _ = listener.accept()
        kept.append(server_tls().wrap_socket(sock, server_side=True))

    serving_thread = loop.run_in_executor(None, serve)
    transport, protocol = await soon(
        loop.create_connection(Recorder, *listener.getsockname(), **client_options(ssl_shutdown_timeout=0.3))
    )
    await soon(serving_thread)
    protocol.kept = kept
    listener.close()
    return transport, protocol


@check(FAILURES)
async def tls_arguments_are_checked() -> None:
    loop: Any = asyncio.get_running_loop()
    await raises_async(ValueError, loop.create_connection(Recorder, "127.0.0.1", 1, ssl_shutdown_timeout=1.0))
    await raises_async(TypeError, loop.create_server(Recorder, "127.0.0.1", 0, ssl=True))
    async with serving(Recorder, ssl=server_tls()) as (_, port):
        await raises_async(
            ValueError,
            loop.create_connection(
                Recorder,
                "127.0.0.1",
                port,
                ssl=client_tls(),
                server_hostname="localhost",
                ssl_handshake_timeout=-1,
            ),
        )


@check(ENDS)
async def plain_text_at_a_tls_server_ends_the_connection() -> None:
    with collected_errors():
        async with serving(Recorder, ssl=server_tls()) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.0\r\n\r\n" * 20)
            with contextlib.suppress(ConnectionError):
                await soon(reader.read())
            writer.close()


@check(ENDS)
async def peer_that_drops_mid_handshake_raises() -> None:
    loop: Any = asyncio.get_running_loop()

    class Dropping(Recorder):
        def data_received(self, data: bytes) -> None:
            self.transport.abort()

    async with serving(Dropping) as (_, port):
        await raises_async(
            ConnectionError, soon(loop.create_connection(Recorder, "127.0.0.1", port, **client_options()))
        )


@check(ENDS)
async def end_without_close_notify_is_an_eof() -> None:
    async with pair(client_options=client_options(), ssl=server_tls()) as both:
        both.client.write(b"last")
        await both.server_protocol.received(4)
        both.client.abort()
        await soon(both.server_protocol.lost)
        assert both.server_protocol.calls == ["made", "data", "eof", "lost"], both.server_protocol.calls


@check(ENDS)
async def data_and_eof_wait_for_a_paused_tls_reader() -> None:
    message = os.urandom(400_000)
    async with pair(client_options=client_options(), ssl=server_tls()) as both:
        both.server.pause_reading()
        assert not both.server.is_reading()
        both.client.write(message)
        both.client.close()
        await asyncio.sleep(0.2)
        assert not both.server_protocol.data
        both.server.resume_reading()
        await soon(both.server_protocol.lost)
        assert len(both.server_protocol.data) == len(message), len(both.server_protocol.data)
        assert bytes(both.server_protocol.data) == message


@check(ENDS)
async def tls_write_buffer_limits() -> None:
    async with pair(client_options=client_options(), ssl=server_tls()) as both:
        assert both.client.get_write_buffer_limits() == (131072, 524288)
        both.server.pause_reading()
        # the first fills the transport below, the others the TLS layer's own buffer
        for size in (20_000_000, 1_000_000, 1_000_000):
            both.client.write(bytes(size))
            await asyncio.sleep(0.05)
        await until(lambda: "pause" in both.client_protocol.calls)
        both.server.resume_reading()
        await until(lambda: "resume" in both.client_protocol.calls)


@check(ENDS)
async def closing_against_a_flood_is_prompt() -> None:
    class Flood(Recorder):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            transport.write(bytes(100_000))

        def resume_writing(self) -> None:
            self.more()

        def data_received(self, data: bytes) -> None:
            self.more()

        def more(self) -> None:
            if not self.transport.is_closing():
                self.transport.write(bytes(100_000))
                asyncio.get_running_loop().call_soon(self.more)

    with collected_errors():
        async with pair(
            server=Flood, client_options=client_options(ssl_shutdown_timeout=1.0), ssl=server_tls()
        ) as both:
            both.client.write(b"go")
            await both.client_protocol.received(500_000)
            both.client.close()
            await soon(both.client_protocol.lost)
            both.server.abort()
