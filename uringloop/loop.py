"""EventLoop: asyncio's interface on the compiled core. It overrides what differs from BaseEventLoop, with a line or
two each that call the room that does the work; CPython's own code does everything else."""

from __future__ import annotations

import contextvars
import functools
import os
import socket
import sys
import warnings
from asyncio import base_events, constants, events
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVarTuple

from uringloop._core.awaitables.resolve import getaddrinfo, getnameinfo
from uringloop._core.awaitables.sock_op import (
    sock_accept,
    sock_recv,
    sock_recv_into,
    sock_recvfrom,
    sock_recvfrom_into,
    sock_sendall,
    sock_sendto,
)
from uringloop._core.engine.uring import UringEngine
from uringloop._core.kernel.probe import locked_memory, refusal
from uringloop._core.loop import calls, tasks  # noqa: F401  # importing them adds their methods to Loop
from uringloop._core.loop.handle import Handle
from uringloop._core.loop.loop import Loop
from uringloop._core.transport.stream import make_stream_transport
from uringloop.errors import UringUnavailable, UringUnavailableWarning
from uringloop.inspect.observers import register_loop
from uringloop.later import Later
from uringloop.net.readers import Readers, descriptor
from uringloop.net.servers import Listener
from uringloop.net.signals import Signals

if TYPE_CHECKING:
    from uringloop.inspect.operations import Operation
    from uringloop.inspect.statistics import Statistics
    from uringloop.net.pipes import make_read_pipe_transport, make_write_pipe_transport
    from uringloop.net.sendfile import sendfile_native, sock_sendfile_native
    from uringloop.net.sock_calls import sock_connect
    from uringloop.net.subprocesses import make_subprocess_transport
    from uringloop.net.tls import make_tls_transport, start_tls
    from uringloop.net.unix_sockets import create_unix_connection, create_unix_server
    from uringloop.patches import NoSelector
else:
    make_read_pipe_transport = Later("uringloop.net.pipes", "make_read_pipe_transport")
    make_write_pipe_transport = Later("uringloop.net.pipes", "make_write_pipe_transport")
    sendfile_native = Later("uringloop.net.sendfile", "sendfile_native")
    sock_sendfile_native = Later("uringloop.net.sendfile", "sock_sendfile_native")
    sock_connect = Later("uringloop.net.sock_calls", "sock_connect")
    make_subprocess_transport = Later("uringloop.net.subprocesses", "make_subprocess_transport")
    make_tls_transport = Later("uringloop.net.tls", "make_tls_transport")
    start_tls = Later("uringloop.net.tls", "start_tls")
    create_unix_connection = Later("uringloop.net.unix_sockets", "create_unix_connection")
    create_unix_server = Later("uringloop.net.unix_sockets", "create_unix_server")

Ts = TypeVarTuple("Ts")

ENGINES = ("auto", "uring", "epoll", "fake")


def choose_engine(wanted: str | None, refused: tuple[int, str, str] | None = None) -> tuple[str, type[Any]]:
    """Return the name and class of an engine. "auto" means io_uring where the kernel allows it, and otherwise epoll,
    with a warning. `refused` is the reason why no ring could be made, if the caller has tried."""
    name = wanted or os.environ.get("URINGLOOP_ENGINE") or "auto"
    if name not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, not {name!r}")
    if name == "fake":
        try:
            from uringloop._core.engine.fake import FakeEngine
        except ImportError:
            raise ValueError("only a debug build has the fake engine") from None
        return name, FakeEngine
    if name in ("auto", "uring"):
        if refused is None:
            try:
                refused = refusal()
            except OSError as error:
                refused = locked_memory(error)
                if refused is None:
                    raise
        if refused is None:
            return "uring", UringEngine
        number, cause, remedy = refused
        if name == "uring":
            raise UringUnavailable(number, f"io_uring is refused here: {cause}. To allow it: {remedy}")
        _warn_once(f"io_uring is refused here: {cause}; loops use epoll instead. To allow it: {remedy}")
    from uringloop._core.engine.epoll import EpollEngine

    return "epoll", EpollEngine


_RUNNING = "This event loop is already running"
_warned = False


def _warn_once(message: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(message, UringUnavailableWarning, stacklevel=5)


class EventLoop(Loop, base_events.BaseEventLoop):
    """An asyncio event loop that waits for everything through one io_uring, or through epoll where io_uring is refused.

    `new_event_loop` makes one and explains the options."""

    _closing = False  # close() is running

    def __init__(self, *, engine: str | None = None, entries: int = 0, busy_poll: float = 0.0) -> None:
        if not isinstance(entries, int) or not 0 <= entries <= 32768:
            raise ValueError(f"entries must be an int from 1 to 32768 (or 0: the default), not {entries!r}")
        if not 0 <= busy_poll <= 1:
            raise ValueError(f"busy_poll is seconds to poll before sleeping, from 0 to 1, not {busy_poll!r}")
        name, engine_class = choose_engine(engine)
        if not self.engine.closed:
            raise RuntimeError(f"{type(self).__name__}.__init__() was called already")
        base_events.BaseEventLoop.__init__(self)
        short = None
        try:
            self._set_up(engine_class, {"entries": entries}, busy_poll)
        except OSError as error:
            short = locked_memory(error) if name == "uring" else None
            if short is None:
                raise
        if short is not None:
            name, engine_class = choose_engine(engine, short)
            self._set_up(engine_class, {"entries": entries}, busy_poll)
        self._engine_name = name
        # Keyed by socket: when a server is closed, its descriptor number may already belong to another file.
        self._listeners: dict[socket.socket, Listener] = {}
        self._accepting: Any = None
        self._datagram_room: Any = None
        self._ops_ring: Any = None
        self._file_workers: Any = None
        self._unix_server_sockets: dict[socket.socket, int] = {}
        self._at_close: list[Callable[[], object]] = []  # close() calls them
        self._readers = Readers(self)
        self._signals = Signals(self)
        self._closed = False
        self._number = register_loop(self)

    def __repr__(self) -> str:
        state = "closed" if self.is_closed() else "running" if self.is_running() else "stopped"
        return f"<{type(self).__name__} {state} engine={self._engine_name} debug={self.get_debug()}>"

    def set_debug(self, enabled: bool) -> None:
        super().set_debug(enabled)
        if enabled:
            from uringloop._core.handoff.wait_times import record_wait_times

            record_wait_times()

    # Running

    def run_until_complete(self, future: Any) -> Any:
        """Run until the future, or the coroutine's task, is done; return its result or raise its exception."""
        self._check_closed()
        self._check_running()
        run = base_events.BaseEventLoop.run_until_complete  # makes the coroutine a task of the loop
        return self._alone(_RUNNING, run, self, future)

    def run_forever(self) -> None:
        """Run until stop() is called."""
        self._check_closed()
        self._check_running()
        if type(self).time is not Loop.time or "time" in self.__dict__:
            from uringloop.patches import check_clock

            check_clock(self)
        self._alone(_RUNNING, self._run_alone)

    def _run_alone(self) -> None:
        self._check_closed()  # again: another thread may have closed the loop just now
        self._set_coroutine_origin_tracking(self._debug)
        previous_hooks = sys.get_asyncgen_hooks()
        wakeup = self._signals.enter_run()
        try:
            sys.set_asyncgen_hooks(
                firstiter=self._asyncgen_firstiter_hook, finalizer=self._asyncgen_finalizer_hook
            )
            events._set_running_loop(self)
            self._run_until_stopped()
        finally:
            self._stopping = False
            events._set_running_loop(None)
            self._set_coroutine_origin_tracking(False)
            sys.set_asyncgen_hooks(*previous_hooks)
            self._signals.leave_run(wakeup)

    def close(self) -> None:
        """Cancel the operations in the kernel, wait until they have ended, then free all resources. If an exception
        (Ctrl-C) interrupts that, the remaining operations stay valid, and the next call continues."""
        if self.is_running():
            raise RuntimeError("Cannot close a running event loop")
        if self._closed and not self._kept_alive:
            return
        self._alone("Cannot close a running event loop", self._close_alone)

    def _close_alone(self) -> None:
        if self._closing or (self._closed and not self._kept_alive):  # another thread has closed it just now,
            return  # or a destructor called this during close(): the outer call continues, and closes everything
        self._closing = True
        try:
            self._close()
        finally:
            self._closing = False

    def _close(self) -> None:
        failed: Exception | None = None
        if not self._closed:
            self._selector = None  # asyncio's close() does so, too
            for release in list(self._at_close):
                release()
            for listener in self._listeners.values():
                try:
                    listener.report_unclosed()
                except ResourceWarning as error:  # where warnings are errors; close the loop anyway
                    failed = error
            try:
                self._signals.close()
            except (
                ValueError
            ) as error:  # outside the main thread, as on asyncio's own loop; close the loop anyway
                failed = error
            base_events.BaseEventLoop.close(self)
        # After the loop is marked closed, so that destructors run by this can't add a reader. Outside the `if`, so
        # that a second call clears what an interrupted first one has left.
        self._readers.clear()
        self._close_core()
        self._signals.let_go()
        self._readers.let_go()
        if failed is not None:
            raise failed

    def __del__(self) -> None:
        try:
            super().__del__()
        finally:
            # Also where the warning raises: once the collector has taken the loop apart, it can't be drained.
            if not self.is_closed() and not self.is_running():
                self.close()

    # Attributes for libraries that patch asyncio's own loop

    _clock_warned = False

    @functools.cached_property
    def _selector(self) -> NoSelector | None:
        from uringloop.patches import NoSelector

        return NoSelector(self._readers)

    @property
    def _nest_patched(self) -> bool:
        from uringloop.patches import nest_patched

        return nest_patched(self)

    # Readiness of descriptors

    def add_reader(self, fd: Any, callback: Callable[[*Ts], Any], *args: *Ts) -> None:
        """Call callback(*args) whenever the descriptor, socket or file object is readable."""
        self._check_closed()
        self._ensure_fd_no_transport(fd)
        self._add_reader(fd, callback, *args)

    def add_writer(self, fd: Any, callback: Callable[[*Ts], Any], *args: *Ts) -> None:
        """Call callback(*args) whenever the descriptor, socket or file object is writable."""
        self._check_closed()
        self._ensure_fd_no_transport(fd)
        self._readers.add(fd, True, callback, args)

    def remove_reader(self, fd: Any) -> bool:
        """Stop watching for readability; return whether there was a reader."""
        self._ensure_fd_no_transport(self._readers.find(fd), fd)
        return self._remove_reader(fd)

    def remove_writer(self, fd: Any) -> bool:
        """Stop watching for writability; return whether there was a writer."""
        self._ensure_fd_no_transport(self._readers.find(fd), fd)
        return self._remove_writer(fd)

    def _remove_reader(self, fd: Any) -> bool:
        if self._closed:
            return False
        number = self._readers.find(fd)
        return self._readers.remove(number, False) or self._stop_listening(number)

    def _remove_writer(self, fd: Any) -> bool:
        return not self._closed and self._readers.remove(self._readers.find(fd), True)

    def _add_reader(self, fd: Any, callback: Callable[[*Ts], Any], *args: *Ts) -> Handle:
        self._check_closed()
        handle = self._readers.add(fd, False, callback, args)
        self._stop_listening(descriptor(fd))
        return handle

    def _add_writer(self, fd: Any, callback: Callable[[*Ts], Any], *args: *Ts) -> Handle:
        self._check_closed()
        return self._readers.add(fd, True, callback, args)

    # Stream transports and servers

    def _make_socket_transport(
        self,
        sock: socket.socket,
        protocol: Any,
        waiter: Any = None,
        *,
        extra: Any = None,
        server: Any = None,
        context: Any = None,
    ) -> Any:
        self._ensure_fd_no_transport(sock)
        return make_stream_transport(
            self, sock, protocol, waiter, extra, server, context or contextvars.copy_context()
        )

    _make_ssl_transport = make_tls_transport
    start_tls = start_tls

    def _start_serving(
        self,
        protocol_factory: Callable[[], Any],
        sock: socket.socket,
        sslcontext: Any = None,
        server: Any = None,
        backlog: int = 100,
        ssl_handshake_timeout: float | None = constants.SSL_HANDSHAKE_TIMEOUT,
        ssl_shutdown_timeout: float | None = constants.SSL_SHUTDOWN_TIMEOUT,
        context: Any = None,
    ) -> None:
        timeouts = (ssl_handshake_timeout, ssl_shutdown_timeout)
        listener = Listener(self, protocol_factory, sock, sslcontext, server, timeouts, context)
        for other in list(self._listeners):
            if other is sock or other.fileno() < 0:  # closed without close(): `sock` may now have its number
                self._listeners.pop(other).stop()
        self._listeners[sock] = listener

    def _stop_listening(self, number: int) -> bool:
        """Stop the server that listens on this descriptor; return whether there was one. In asyncio a listening
        socket has a reader, and code that removes or replaces that reader takes over the socket."""
        for sock in self._listeners:
            if sock.fileno() == number:
                self._listeners.pop(sock).stop()
                return True
        return False

    def _stop_serving(self, sock: socket.socket) -> None:
        listener = self._listeners.pop(sock, None)
        if listener is not None:
            listener.stop()
        if sock in self._unix_server_sockets:
            from uringloop.net.unix_sockets import remove_socket_of

            remove_socket_of(sock, self._unix_server_sockets)
        sock.close()

    create_unix_connection = create_unix_connection
    create_unix_server = create_unix_server

    def _ensure_fd_no_transport(self, fd: Any, given: Any = None) -> None:
        transport = self._transports.get(descriptor(fd))
        if transport is not None and not transport.is_closing():
            shown = fd if given is None else given
            raise RuntimeError(f"File descriptor {shown!r} is used by transport {transport!r}")

    # Names

    getaddrinfo = getaddrinfo
    getnameinfo = getnameinfo

    # Datagrams

    def _make_datagram_transport(
        self,
        sock: socket.socket,
        protocol: Any,
        address: Any = None,
        waiter: Any = None,
        extra: Any = None,
        *,
        context: Any = None,
    ) -> Any:
        from uringloop._core.transport.datagram import make_datagram_transport

        self._ensure_fd_no_transport(sock)
        return make_datagram_transport(
            self, sock, protocol, address, waiter, extra, context or contextvars.copy_context()
        )

    # Coroutines on sockets of the caller's own

    sock_recv = sock_recv  # type: ignore[assignment]  # typeshed names an argument otherwise
    sock_recv_into = sock_recv_into
    sock_recvfrom = sock_recvfrom
    sock_recvfrom_into = sock_recvfrom_into
    sock_sendall = sock_sendall
    sock_sendto = sock_sendto
    sock_accept = sock_accept
    sock_connect = sock_connect
    _sock_sendfile_native = sock_sendfile_native
    _sendfile_native = sendfile_native

    # Pipes and processes

    _make_read_pipe_transport = make_read_pipe_transport
    _make_write_pipe_transport = make_write_pipe_transport
    _make_subprocess_transport = make_subprocess_transport

    # Inspection

    def statistics(self) -> Statistics:
        """Return counters of what the loop has done, and the sizes of what it has now."""
        from uringloop.inspect.statistics import statistics

        return statistics(self)

    def operations(self) -> list[Operation]:
        """Return the loop's operations in the kernel, each with the object it is for."""
        from uringloop.inspect.operations import operations

        return operations(self)

    # Signals

    def add_signal_handler(self, sig: int, callback: Callable[[*Ts], Any], *args: *Ts) -> None:
        """Call callback(*args) in the loop for each signal of this number; only in the main thread."""
        self._signals.add(sig, callback, args)

    def remove_signal_handler(self, sig: int) -> bool:
        """Restore the default handler of the signal; return whether there was a handler to remove."""
        return self._signals.remove(sig)


def new_event_loop(**options: Any) -> EventLoop:
    """Make an EventLoop; for `asyncio.Runner(loop_factory=uringloop.new_event_loop)`.

    `engine` is "auto", "uring" or "epoll", and takes precedence over URINGLOOP_ENGINE. `entries` is the size of the
    ring. `busy_poll` is for how many seconds the thread polls for I/O before it sleeps, as long as polling finds I/O.
    """
    return EventLoop(**options)
