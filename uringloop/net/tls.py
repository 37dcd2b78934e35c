"""TLS set-up: TLS on a new socket, or on an open connection (start_tls). The connection itself is
`_core.tls.connection.TlsConnection`."""

from __future__ import annotations

import socket
import ssl
from asyncio import constants, sslproto
from typing import TYPE_CHECKING, Any

from uringloop._core.tls.connection import TlsConnection
from uringloop._core.tls.transport import TlsTransport
from uringloop.net import StreamReaderProtocol

if TYPE_CHECKING:
    from uringloop.loop import EventLoop


def make_tls_transport(
    loop: EventLoop,
    sock: socket.socket,
    protocol: Any,
    sslcontext: Any,
    waiter: Any = None,
    *,
    server_side: bool = False,
    server_hostname: str | None = None,
    extra: Any = None,
    server: Any = None,
    ssl_handshake_timeout: float | None = None,
    ssl_shutdown_timeout: float | None = None,
    call_connection_made: bool = True,
    context: Any = None,
) -> TlsTransport:
    """Make a TLS transport on a connected socket, which the transport owns from now on. The waiter gets the outcome of
    the handshake."""
    loop._ensure_fd_no_transport(sock)
    connection = TlsConnection(
        loop,
        protocol,
        sslcontext or sslproto._create_transport_context(server_side, server_hostname),
        waiter,
        server_side,
        server_hostname,
        call_connection_made,
        *_timeouts(ssl_handshake_timeout, ssl_shutdown_timeout),
    )
    transport = TlsTransport(connection)
    try:
        loop._make_socket_transport(sock, connection, extra=extra, server=server, context=context)
    except BaseException:
        transport.abort()  # it never reaches the program, so it must not warn that it was left unclosed
        raise
    return transport


async def start_tls(
    loop: EventLoop,
    transport: Any,
    protocol: Any,
    sslcontext: ssl.SSLContext,
    *,
    server_side: bool = False,
    server_hostname: str | None = None,
    ssl_handshake_timeout: float | None = None,
    ssl_shutdown_timeout: float | None = None,
) -> TlsTransport | None:
    """Upgrade the connection to TLS; return the transport that replaces this one for the protocol. Like asyncio's own
    loop, return None if the connection ends without an error during the handshake."""
    if not isinstance(sslcontext, ssl.SSLContext):
        raise TypeError(f"sslcontext is expected to be an instance of ssl.SSLContext, got {sslcontext!r}")
    if not getattr(transport, "_start_tls_compatible", False):
        raise TypeError(f"transport {transport!r} is not supported by start_tls()")
    waiter = loop.create_future()
    connection = TlsConnection(
        loop,
        protocol,
        sslcontext,
        waiter,
        server_side,
        server_hostname,
        False,
        *_timeouts(ssl_handshake_timeout, ssl_shutdown_timeout),
    )
    upgraded = TlsTransport(connection)
    transport.pause_reading()  # no data may arrive before connection_made
    if server_side:
        _take_over_what_was_read(protocol, connection)
    transport.set_protocol(connection)
    made = loop.call_soon(connection.connection_made, transport)
    resume = loop.call_soon(transport.resume_reading)
    try:
        await waiter
    except BaseException:
        transport.close()
        made.cancel()
        resume.cancel()
        del waiter  # breaks a cycle: its exception refers to this frame, which refers to the waiter
        raise
    return upgraded if connection.application.transport is upgraded else None


def _timeouts(handshake: float | None, shutdown: float | None) -> tuple[float, float]:
    """The two timeouts in seconds; None stands for asyncio's default."""
    for name, value in (("ssl_handshake_timeout", handshake), ("ssl_shutdown_timeout", shutdown)):
        if value is not None and value <= 0:
            raise ValueError(f"{name} should be a positive number, got {value}")
    return (
        constants.SSL_HANDSHAKE_TIMEOUT if handshake is None else handshake,
        constants.SSL_SHUTDOWN_TIMEOUT if shutdown is None else shutdown,
    )


def _take_over_what_was_read(protocol: Any, connection: TlsConnection) -> None:
    """Pass data that the stream reader already holds to the TLS connection: a client that doesn't wait for the
    server's answer may have sent the beginning of its handshake."""
    reader = getattr(protocol, "_stream_reader", None) if isinstance(protocol, StreamReaderProtocol) else None
    if reader is not None and reader._buffer:
        connection.take_over(reader._buffer)
        reader._buffer.clear()
