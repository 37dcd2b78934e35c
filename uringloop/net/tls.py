"""TLS connections: what is done once for each, on a new socket or on a connection that has begun without. The
connection itself is `_core.tls.TlsConnection`."""

from __future__ import annotations

import socket
import ssl
from asyncio import constants, sslproto, streams
from typing import TYPE_CHECKING, Any

from uringloop._core.tls.connection import TlsConnection
from uringloop._core.tls.transport import TlsTransport

if TYPE_CHECKING:
    from uringloop.loop import EventLoop

# The class itself: a test suite may put a function in its place.
_StreamReaderProtocol = streams.StreamReaderProtocol


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
    """A transport on a connected socket, which is its own from now on; the waiter is told when the handshake is over,
    or has failed."""
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
        transport.abort()  # nobody will see it: no warning that it was not closed
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
    """TLS from here on: the transport that the protocol uses in place of this one. None, as on asyncio's own loop,
    where the connection has ended without an error meanwhile."""
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
    transport.pause_reading()  # nothing is to arrive before connection_made
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
        del waiter  # its exception refers to this frame, which refers to it
        raise
    return upgraded if connection.application.transport is upgraded else None


def _timeouts(handshake: float | None, shutdown: float | None) -> tuple[float, float]:
    """In seconds, None being asyncio's own."""
    for name, value in (("ssl_handshake_timeout", handshake), ("ssl_shutdown_timeout", shutdown)):
        if value is not None and value <= 0:
            raise ValueError(f"{name} should be a positive number, got {value}")
    return (
        constants.SSL_HANDSHAKE_TIMEOUT if handshake is None else handshake,
        constants.SSL_SHUTDOWN_TIMEOUT if shutdown is None else shutdown,
    )


def _take_over_what_was_read(protocol: Any, connection: TlsConnection) -> None:
    """A client that does not wait for the answer has sent the beginning of its handshake already."""
    reader = (
        getattr(protocol, "_stream_reader", None) if isinstance(protocol, _StreamReaderProtocol) else None
    )
    if reader is not None and reader._buffer:
        connection.take_over(reader._buffer)
        reader._buffer.clear()
