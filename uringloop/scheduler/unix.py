"""UnixListener: a path has one listening socket, so one context accepts for all and hands the connections out in turn.
Owns that socket and the path; when the context that accepts ends, another goes on."""

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
    """Listener's way to make a connection of a descriptor, where another context accepted it."""

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
    """Accepts, and hands out."""

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
    raise AssertionError("its shares make the protocols")


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
        self._owner: Context | None = None  # who accepts, or is about to
        self._closed: list[Callable[[], None]] | None = None  # what to call once nothing more is handed out
        self._ended = False
        self._spreader: Spreader | None = None  # the owner's thread
        self._sock = _listen(self.path, backlog)
        self._made = None if _is_abstract(self.path) else os.lstat(self.path)

    async def open_share(self, share: Share) -> None:
        share.server = Server(share.context.loop, [], share.factory, self._ssl, 0, *self._timeouts)
        self._adopters[share] = Adopter(share, self._ssl, self._timeouts)

    def start(self, after: Context | None = None) -> None:
        """From any thread; and again on the thread of a context that ends, `after` it."""
        with self._guard:
            if self._owner is not after:
                return  # another goes on already
            for share in self._shares:
                context = share.context
                if self._closed is not None or context is after or not context.alive:
                    continue
                self._owner = context
                context.stop_callbacks.add(self._stop_callbacks[context])
                if not context.alive:
                    continue  # the context may have called its stop callbacks before
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
            # Closed, its shares serve nobody new; but where only this context ends, the others serve whom it accepted.
            spreader.stop(None if self._closed is not None else spreader.connected)

    def _hand_out(self, sock: socket.socket) -> None:
        for _ in self._shares:
            self._turn += 1
            share = self._shares[self._turn % len(self._shares)]
            if share.context.alive:
                with suppress(RuntimeError):  # it ended just now
                    share.context.loop.call_soon_threadsafe(self._adopters[share].adopt, sock)
                    return
        sock.close()

    def close(self, then: Callable[[], None]) -> None:
        """From any thread: accept no more; `then` is called when what was accepted has been handed out."""
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
        """Nobody accepts any more. Once: the path's number may be another's later."""
        with self._guard:
            ended, self._ended = self._ended, True
        if ended:
            return
        self._sock.close()
        if self._made is not None:
            with suppress(OSError):
                found = os.lstat(self.path)
                if (found.st_dev, found.st_ino) == (self._made.st_dev, self._made.st_ino):
                    os.unlink(self.path)  # still ours
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
    """A socket that nobody listens on, as a server that was killed leaves it. Anything else stays where it is."""
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        return probe.connect_ex(path) == errno.ECONNREFUSED
