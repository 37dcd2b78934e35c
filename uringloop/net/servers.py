"""Servers: a listening socket and the set-up of its accepted connections. `asyncio.base_events.Server` is CPython's
own, and `_core.transport.accept.AcceptOp` accepts."""

from __future__ import annotations

import contextvars
import errno
import os
import socket
import warnings
from asyncio import constants, trsock
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from uringloop._core.transport.accept import AcceptOp
from uringloop._core.transport.accepted import connected
from uringloop.net import Socket
from uringloop.net.readers import descriptor

if TYPE_CHECKING:
    import traceback

    from uringloop.loop import EventLoop

_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_NOT_LISTENING = (errno.EBADF, errno.EINVAL, errno.ENOTSOCK)


class Listener:
    """One listening socket and its pending accept."""

    def __init__(
        self,
        loop: EventLoop,
        protocol_factory: Callable[[], Any],
        sock: socket.socket,
        sslcontext: Any,
        server: Any,
        timeouts: tuple[float | None, float | None],
        context: contextvars.Context | None,
    ) -> None:
        self._loop = loop
        self._protocol_factory = protocol_factory
        self._sock = sock
        self._sslcontext = sslcontext
        self._server = server
        self._timeouts = timeouts
        self._context = context or contextvars.copy_context()
        self._made_at: traceback.StackSummary | None = None
        if loop.get_debug():
            from uringloop.inspect.creation import creation_stack

            self._made_at = creation_stack(loop)
        self._failing = False  # accept() has failed since the last connection, and the failure was reported
        self._accept = AcceptOp(loop, descriptor(sock), self)
        self._accept.start()

    def __repr__(self) -> str:
        return f"<Listener fd={self._sock.fileno()} of {self._server!r}>"

    def fileno(self) -> int:
        return self._sock.fileno()

    def stop(self, late: Callable[[int], object] | None = None) -> None:
        self._accept.stop(late)

    def report_unclosed(self) -> None:
        """In debug mode: warn that the loop closes while this server was never stopped."""
        if self._made_at is not None:
            from uringloop.inspect.creation import creation_note

            message = f"unclosed server {self._server!r}{creation_note(self._made_at)}"
            warnings.warn(message, ResourceWarning, stacklevel=3, source=self._server)

    connected = connected

    def begin_handshake(self, fd: int, context: contextvars.Context) -> None:
        sock = Socket(fileno=fd)
        sock.setblocking(False)
        handshake = self._handshake(sock)
        try:
            context.run(self._loop.create_task, handshake)
        except BaseException as error:  # raised by a task factory
            handshake.close()
            sock.close()
            if isinstance(error, SystemExit | KeyboardInterrupt):
                raise
            self._loop.call_exception_handler(
                {"message": "Exception in starting the handshake of a connection", "exception": error}
            )

    def log_connection(self, fd: int) -> None:
        from asyncio.log import logger

        logger.debug("%r got a new connection: fd %d", self._server, fd)

    async def _handshake(self, sock: socket.socket) -> None:
        protocol = transport = None
        try:
            protocol = self._protocol_factory()
            waiter = self._loop.create_future()
            handshake, shutdown = self._timeouts
            transport = self._loop._make_ssl_transport(
                sock,
                protocol,
                self._sslcontext,
                waiter=waiter,
                server_side=True,
                server=self._server,
                ssl_handshake_timeout=handshake,
                ssl_shutdown_timeout=shutdown,
                context=contextvars.copy_context(),  # with the variables that the protocol factory has set
            )
            try:
                await waiter
            except BaseException:
                transport.close()
                raise
            finally:
                del waiter  # breaks a cycle: its exception refers to the protocol, which refers to the waiter
        except (SystemExit, KeyboardInterrupt):
            if transport is None:
                sock.close()
            raise
        except BaseException as error:
            if transport is None:
                sock.close()
            self.report(error, protocol, transport)

    def report(self, error: BaseException, protocol: Any, transport: Any) -> None:
        """Report a connection that could not be set up. Like asyncio, only in debug mode, because a peer can cause any
        number of them; but always report a MemoryError."""
        if not self._loop.get_debug() and not isinstance(error, MemoryError):
            return
        context = {"message": "Error on transport creation for incoming connection", "exception": error}
        if protocol is not None:
            context["protocol"] = protocol
        if transport is not None:
            context["transport"] = transport
        self._loop.call_exception_handler(context)

    def failed(self, number: int) -> None:
        """accept() failed, usually for lack of descriptors or memory: report it once, and retry after a delay.
        Network errors, which Linux reports through accept(), are transient too."""
        if not self._failing:
            self._failing = True
            what = "out of system resource" if number in _OUT_OF_RESOURCES else "failed"
            self._loop.call_exception_handler(
                {
                    "message": f"socket.accept() {what}",
                    "exception": OSError(number, os.strerror(number)),
                    "socket": trsock.TransportSocket(self._sock),
                }
            )
        if number not in _NOT_LISTENING:
            self._loop.call_later(constants.ACCEPT_RETRY_DELAY, self._retry)

    def _retry(self) -> None:
        stopped = self._accept.listener is None or self._sock.fileno() != self._accept.fd
        if not stopped and not self._loop.is_closed():
            self._accept.start()
