"""UnixListener: a server on a Unix path. A path has one listening socket, so one context, the owner, accepts for all
and hands the connections out in turn. UnixListener owns the socket and the path; when the owner ends, another context
takes over."""

from __future__ import annotations

import contextvars
import errno
import os
import socket
import stat
import threading
from asyncio.base_events import Server
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from uringloop.net.servers import Listener
from uringloop.scheduler.context import Context

if TYPE_CHECKING:
    from uringloop.scheduler.served import Share


class Adopter(Listener):
    """A Listener without a socket: makes transports for connections that another context accepted."""

    def __init__(self, share: Share, ssl: Any, timeouts: tuple[float | None, float | None]) -> None:
        self._loop, self._protocol_factory = share.context.loop, share.factory
        self._sslcontext, self._server, self._timeouts = ssl, share.server, timeouts
        self._context = contextvars.copy_context()
        self._failing, self._made_at = False, None

    def adopt(self, sock: socket.socket) -> None:
        self.connected(sock.detach())

    def __repr__(self) -> str:
        return f"<Adopter of {self._server!r}>"


class Spreader(Listener):
    """A Listener that hands its accepted connections out to the contexts."""

    def __init__(self, loop: Any, sock: socket.socket, hand_out: Callable[[socket.socket], None]) -> None:
        self._hand_out = hand_out
        super().__init__(loop, _none, sock, None, None, (None, None), None)
        self._made_at = None

    def connected(self, fd: int) -> None:
        self._failing = False
        self._hand_out(socket.socket(fileno=fd))

    def __repr__(self) -> str:
        return f"<Spreader fd={self._sock.fileno()}>"


def _none() -> None:
    raise AssertionError("the shares make the protocols")


class UnixListener:
    def __init__(
        self,
        shares: list[Share],
        path: Any,
        *,
        ssl: Any = None,
        backlog: int = 100,
        ssl_handshake_timeout: float | None = None,
        ssl_shutdown_timeout: float | None = None,
    ) -> None:
        self.path = os.fspath(path)
        self._ssl, self._timeouts = ssl, (ssl_handshake_timeout, ssl_shutdown_timeout)
        self._shares, self._turn = shares, 0
        self._adopters: dict[Share, Adopter] = {}
        self._stop_callbacks = {share.context: partial(self._owner_ends, share.context) for share in shares}
        self._guard = threading.Lock()  # of `_owner` and `_closed`
        self._owner: Context | None = None  # the context that accepts, or is about to
        self._closed: list[Callable[[], None]] | None = None  # called when the last connection is handed out
        self._ended = False
        self._spreader: Spreader | None = None  # only the owner's thread uses it
        self._sock = _listen(self.path, backlog)
        self._made = None if _is_abstract(self.path) else os.lstat(self.path)

    async def open_share(self, share: Share) -> None:
        share.server = Server(share.context.loop, [], share.factory, self._ssl, 0, *self._timeouts)
        self._adopters[share] = Adopter(share, self._ssl, self._timeouts)

    def start(self, after: Context | None = None) -> None:
        """Let a living context accept. Called from any thread, and again on the thread of an owner that ends, with
        `after` naming it."""
        with self._guard:
            if self._owner is not after:
                return  # another context has taken over already
            for share in self._shares:
                context = share.context
                if self._closed is not None or context is after or not context.alive:
                    continue
                self._owner = context
                context.stop_callbacks.add(self._stop_callbacks[context])
                if not context.alive:
                    continue  # it may have run its stop callbacks before this one was added
                with suppress(RuntimeError):
                    context.loop.call_soon_threadsafe(self._accept, context)
                    return
            self._owner = None
        self._end()

    def _accept(self, context: Context) -> None:
        if self._owner is context and self._closed is None and context.alive:
            self._spreader = Spreader(context.loop, self._sock, self._hand_out)

    def _owner_ends(self, context: Context) -> None:
        if self._owner is context:
            self._stop_accepting()
            self.start(after=context)

    def _stop_accepting(self) -> None:
        spreader, self._spreader = self._spreader, None
        if spreader is not None:
            # If only this context ends, the other contexts serve the connections that it accepts last. If the whole
            # listener closes, they don't.
            spreader.stop(None if self._closed is not None else spreader.connected)

    def _hand_out(self, sock: socket.socket) -> None:
        for _ in self._shares:
            self._turn += 1
            share = self._shares[self._turn % len(self._shares)]
            if share.context.alive:
                with suppress(RuntimeError):  # the context ended just now
                    share.context.loop.call_soon_threadsafe(self._adopters[share].adopt, sock)
                    return
        sock.close()

    def close(self, then: Callable[[], None]) -> None:
        """Stop accepting; may be called from any thread. Calls `then` when all accepted connections are handed out."""
        with self._guard:
            first = self._closed is None
            if first:
                self._closed = [then]
            elif self._closed:
                self._closed.append(then)
                return
            owner = self._owner
        if not first:
            then()
            return
        if owner is not None:
            with suppress(RuntimeError):
                owner.loop.call_soon_threadsafe(self._close, owner)
                return
        self._end()

    def _close(self, owner: Context) -> None:
        owner.stop_callbacks.discard(self._stop_callbacks[owner])
        self._stop_accepting()
        self._end()

    def _end(self) -> None:
        """No context accepts any more: close the socket and remove the path. Only once, because another server may
        have made the same path later."""
        with self._guard:
            ended, self._ended = self._ended, True
        if ended:
            return
        self._sock.close()
        if self._made is not None:
            with suppress(OSError):
                found = os.lstat(self.path)
                if (found.st_dev, found.st_ino) == (self._made.st_dev, self._made.st_ino):
                    os.unlink(self.path)  # still the socket that this listener made
        with self._guard:
            waiting, self._closed = self._closed or [], []
        for then in waiting:
            then()


def _is_abstract(path: str | bytes) -> bool:
    return path[:1] in ("\0", b"\0", "", b"")


def _listen(path: str | bytes, backlog: int) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.setblocking(False)
        if not _is_abstract(path):
            with suppress(FileNotFoundError):
                if is_stale(path):
                    os.unlink(path)
        sock.bind(path)
        try:
            sock.listen(backlog)
        except BaseException:
            if not _is_abstract(path):
                os.unlink(path)
            raise
    except BaseException:
        sock.close()
        raise
    return sock


def is_stale(path: str | bytes) -> bool:
    """Whether the path is a socket without a listener, such as a killed server leaves. No other file is removed."""
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        return probe.connect_ex(path) == errno.ECONNREFUSED
