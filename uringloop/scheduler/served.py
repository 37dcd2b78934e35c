"""Served: a server that runs on every context, returned by Scheduler.serve. Owns a Share per context: the listener
there and its handler tasks. Each connection belongs to the loop that accepted it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from uringloop.scheduler.context import Context
from uringloop.scheduler.job import Job
from uringloop.sync.wait_group import WaitGroup

if TYPE_CHECKING:
    from uringloop.scheduler.scheduler import Scheduler
    from uringloop.scheduler.unix import UnixListener

Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None] | None]
Factory = Callable[[], asyncio.BaseProtocol]


class Share:
    """One context's part of a server. All methods but `drain` are called on the context's own thread. If the context
    dies, another share takes over its listening socket, with the connections in the socket's queue."""

    def __init__(
        self, context: Context, connected: Connected | None, factory: Factory | None, shares: list[Share]
    ) -> None:
        self.context = context
        self._shares = shares
        self.factory: Factory = self._make_protocol if factory is None else factory
        self._connected = connected
        self.server: Any = None  # asyncio's Server, once the share listens
        self._handling: set[asyncio.Task[None]] = set()
        self._over: list[Callable[[], None]] = []  # the callback of `drain`, until it was called
        context.stop_callbacks.add(self._ends)

    def _make_protocol(self) -> asyncio.BaseProtocol:
        """As asyncio.start_server does."""
        loop = asyncio.get_running_loop()
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(loop=loop), self._handle, loop=loop)

    def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._connected is not None
        result = self._connected(reader, writer)
        if asyncio.iscoroutine(result):
            task = asyncio.get_running_loop().create_task(result)
            self._handling.add(task)
            task.add_done_callback(partial(self._handled, writer))

    def _handled(self, writer: asyncio.StreamWriter, task: asyncio.Task[None]) -> None:
        self._handling.discard(task)
        if task.cancelled():
            writer.transport.close()
        elif (error := task.exception()) is not None:
            message = "Unhandled exception in client_connected_cb"
            what = {"message": message, "exception": error, "transport": writer.transport}
            self.context.loop.call_exception_handler(what)
            writer.transport.close()

    @property
    def open(self) -> int:
        """The number of open connections; other threads may read a slightly old value."""
        clients = getattr(self.server, "_clients", None)
        count: int = len(clients) if clients is not None else getattr(self.server, "_active_count", 0)
        return max(count, len(self._handling))

    def close(self) -> None:
        """Stop accepting."""
        self.context.stop_callbacks.discard(self._ends)
        if self.server is not None:
            self.server.close()

    def _ends(self) -> None:
        try:
            if self.context.error is not None and self.server is not None:
                for sock in self.server._sockets or ():
                    self._to_another("adopt_listener", sock.dup())
                    listener = self.context.loop._listeners.get(sock)
                    if listener is not None:
                        listener.stop(late=self._to_another_connected)
        finally:
            self.close()

    def _to_another(self, what: str, sock: socket.socket) -> None:
        for share in self._shares:
            if share.server is not None and share.context.alive:
                with suppress(RuntimeError):  # the context ended just now
                    share.context.loop.call_soon_threadsafe(getattr(share, what), sock)
                    return
        sock.close()

    def _to_another_connected(self, fd: int) -> None:
        self._to_another("adopt_connection", socket.socket(fileno=fd))

    def adopt_listener(self, sock: socket.socket) -> None:
        """Serve a dead context's listening socket beside our own, until the server closes."""
        server = self.server
        if server._sockets is None:
            sock.close()
        elif not self.context.alive:
            self._to_another("adopt_listener", sock)
        else:
            server._sockets.append(sock)
            timeouts = server._ssl_handshake_timeout, server._ssl_shutdown_timeout
            self.context.loop._start_serving(
                server._protocol_factory, sock, server._ssl_context, server, server._backlog, *timeouts
            )

    def adopt_connection(self, sock: socket.socket) -> None:
        """Serve a connection that a dead context has accepted."""
        for own in self.server._sockets or ():
            listener = self.context.loop._listeners.get(own)
            if listener is not None:
                listener.connected(sock.detach())
                return
        sock.close()

    def drain(self, serving: WaitGroup) -> None:
        """Close, and count in `serving` until all open connections have ended. May be called from any thread."""
        serving.begin()
        self._over.append(serving.end)
        self.context.stop_callbacks.add(self._drained)
        if not self.context.alive:
            self._drained()  # the context has ended, or is ending
            return
        with suppress(RuntimeError):  # the loop has closed, and the context called _drained before that
            self.context.loop.call_soon_threadsafe(self._start_draining)

    def _start_draining(self) -> None:
        self.close()
        self.context.loop.create_task(self._drain()).add_done_callback(self._drained)

    async def _drain(self) -> None:
        waiters = None if self.server is None else self.server._waiters
        if waiters is not None:  # as wait_closed() does, except on Python 3.11, where it returns at once
            waiter = asyncio.get_running_loop().create_future()
            waiters.append(waiter)
            await waiter
        while self._handling:
            await asyncio.wait(self._handling)

    def _drained(self, *_: object) -> None:
        self.context.stop_callbacks.discard(self._drained)
        with suppress(IndexError):
            self._over.pop()()


class Served:
    """A server with a listener on every context; Scheduler.serve makes it."""

    def __init__(
        self, contexts: tuple[Context, ...], connected: Connected | None, factory: Factory | None
    ) -> None:
        if (connected is None) == (factory is None):
            raise TypeError(
                "either client_connected_cb or protocol_factory says what to do with a connection"
            )
        self.addresses: list[Any] = []  # the listening sockets' addresses, from getsockname()
        self._shares: list[Share] = []
        self._shares += [
            Share(context, connected, factory, self._shares) for context in contexts if context.alive
        ]
        self._unix: UnixListener | None = None
        self._closed = False

    @property
    def port(self) -> int:
        port: int = self.addresses[0][1]
        return port

    @property
    def connections(self) -> int:
        """The number of open connections on all contexts; may be slightly old."""
        return sum(share.open for share in self._shares)

    @property
    def over(self) -> bool:
        """Whether it is closed and has no connections left, so that the scheduler can drop it."""
        return self._closed and self.connections == 0

    def close(self) -> None:
        """Stop accepting; open connections stay. May be called from any thread."""
        self._closed = True
        if self._unix is not None:
            self._unix.close(self._close_shares)
        else:
            self._close_shares()

    def _close_shares(self) -> None:
        for share in self._shares:
            with suppress(RuntimeError):  # the loop is closed, and so is the server on it
                share.context.loop.call_soon_threadsafe(share.close)

    def drain(self, serving: WaitGroup) -> None:
        """Close; `serving` counts each context until its connections have ended. May be called from any thread."""
        self._closed = True
        if self._unix is None:
            self._drain_shares(serving)
        else:
            serving.begin()

            def closed() -> None:
                self._drain_shares(serving)
                serving.end()

            self._unix.close(closed)

    def _drain_shares(self, serving: WaitGroup) -> None:
        for share in self._shares:
            share.drain(serving)

    def listening(
        self, scheduler: Scheduler, host: str | None, port: int | None, path: Any, options: dict[str, Any]
    ) -> Iterator[Job[None]]:
        """Yield the jobs that make the listeners; when the caller has awaited each in turn, the server listens."""
        if path is not None:
            from uringloop.scheduler.unix import UnixListener

            self._unix = UnixListener(self._shares, path, **options)
            self.addresses.append(self._unix.path)
            for share in self._shares:
                yield scheduler._submit_internal(self._unix.open_share(share), share.context)
            self._unix.start()
            if self._closed:
                self.close()
            return
        for share in self._shares:
            # With port 0, the kernel chooses the first share's port, and all other shares use the same.
            port = self.port if self.addresses else port
            yield scheduler._submit_internal(self._listen(share, host, port, options), share.context)

    async def _listen(
        self, share: Share, host: str | None, port: int | None, options: dict[str, Any]
    ) -> None:
        """Make this context's listener. The kernel distributes connections over all listeners on the port."""
        loop = asyncio.get_running_loop()
        share.server = await loop.create_server(share.factory, host, port, reuse_port=True, **options)
        self.addresses += [sock.getsockname() for sock in share.server.sockets]
        if self._closed or not share.context.alive:
            share.close()

    def __repr__(self) -> str:
        return f"<Served {'closed' if self._closed else 'open'} {self.addresses}>"
