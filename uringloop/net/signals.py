"""Signals: add_signal_handler, and waking the loop for every signal Python has a handler for.

The interpreter's C handler writes each signal's number into one end of a socket pair; the loop reads the
other end through the ring. So a signal wakes the loop whichever thread of the process it was delivered to,
and one that arrives just before the loop goes to sleep is not missed."""

from __future__ import annotations

import os
import signal
import socket
import threading
import weakref
from asyncio import coroutines
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uringloop._core.loop.handle import Handle
    from uringloop.loop import EventLoop

# The public name is deprecated since Python 3.14, this one exists since then; both also know asyncio's own marks.
_is_coroutine_function = getattr(coroutines, "_iscoroutinefunction", None) or coroutines.iscoroutinefunction


def _ignore(signum: int, frame: object) -> None:
    """The Python-level handler behind add_signal_handler: the number in the socket pair says it all."""


def _run_again(handle: Handle) -> None:
    if not handle.cancelled():
        handle._run()


def _close(pair: tuple[socket.socket, socket.socket]) -> None:
    for end in pair:
        end.close()


class Signals:
    """The signal half of one loop."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._handlers: dict[int, Handle] = {}
        self._pair: tuple[socket.socket, socket.socket] | None = None
        self._inherited = False  # the pair is a parent process's
        self._heard = False  # the interpreter was told to write to the pair, and not told otherwise
        self._closed = False
        _living.add(self)

    def add(self, signum: int, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        if coroutines.iscoroutine(callback) or _is_coroutine_function(callback):
            raise TypeError("coroutines cannot be used with add_signal_handler()")
        self.check(signum)
        if self._closed:
            raise RuntimeError("Event loop is closed")
        try:
            self._listen()
        except (ValueError, OSError) as error:
            raise RuntimeError(str(error)) from None
        handle = self._loop._make_handle(callback, args)
        replaced = self._handlers.get(signum)
        if replaced is not None:
            replaced.cancel()
        self._handlers[signum] = handle
        try:
            signal.signal(signum, _ignore)
            signal.siginterrupt(signum, False)  # restart system calls of other threads
        except OSError as error:
            del self._handlers[signum]
            if not self._handlers and not self._loop.is_running():
                self._hush()
            if error.errno == 22:
                raise RuntimeError(f"sig {signum} cannot be caught") from None
            raise

    def remove(self, signum: int) -> bool:
        self.check(signum)
        handle = self._handlers.pop(signum, None)
        if handle is None:
            return False
        handle.cancel()
        back = signal.default_int_handler if signum == signal.SIGINT else signal.SIG_DFL
        try:
            signal.signal(signum, back)
        except OSError as error:
            if error.errno == 22:
                raise RuntimeError(f"sig {signum} cannot be caught") from None
            raise
        if not self._handlers and not self._loop.is_running():
            self._hush()
        return True

    @staticmethod
    def check(signum: object) -> None:
        if not isinstance(signum, int):
            raise TypeError(f"sig must be an int, not {signum!r}")
        if signum not in signal.valid_signals():
            raise ValueError(f"invalid signal number {signum}")

    def _listen(self) -> None:
        """Make the interpreter write to our socket pair; ValueError outside the main thread."""
        if self._inherited:
            self._drop_pair()
        made = self._pair is None
        if self._pair is None:
            inner, outer = self._pair = socket.socketpair()
            inner.setblocking(False)
            outer.setblocking(False)
        try:
            signal.set_wakeup_fd(self._pair[1].fileno())
        except ValueError:
            if made:
                self._drop_pair()
            raise
        self._heard = True
        while _abandoned:  # nobody writes to those any more
            _close(_abandoned.pop())
        if made:
            self._loop._add_reader(self._pair[0].fileno(), self._arrived)

    def _drop_pair(self) -> None:
        self._inherited = False
        if self._pair is None:
            return
        pair, self._pair = self._pair, None
        fd = pair[0].fileno()
        if fd >= 0 and not self._loop.is_closed():  # of garbage, the pair may be taken apart before the loop
            self._loop._remove_reader(fd)
        if self._heard:  # its number must not become another's as long as signals are written to it
            _abandoned.append(pair)
            return
        _close(pair)

    def _leave_pair_to_parent(self) -> None:
        """In a child that was forked in a turn of the loop, and may go on in it: what arrives is the parent's. The
        child listens by a pair of its own from its next turn on, if it has one."""
        if self._pair is not None and self._loop._thread_id == threading.get_ident():
            self._loop._remove_reader(self._pair[0].fileno())
            self._loop.call_soon(self._listen_in_child)

    def _listen_in_child(self) -> None:
        with suppress(
            ValueError, OSError
        ):  # not the main thread, or no descriptors: as if nothing had listened
            if self._inherited:
                self._listen()

    def _hush(self) -> None:
        if self._pair is None:
            return
        try:
            listening = signal.set_wakeup_fd(-1)
            if listening != self._pair[1].fileno():
                signal.set_wakeup_fd(listening)  # somebody else's
        except (ValueError, OSError):
            return  # another thread now, or the interpreter is going down
        self._heard = False

    def _arrived(self) -> None:
        assert self._pair is not None
        try:
            numbers = self._pair[0].recv(4096)
        except (BlockingIOError, InterruptedError):
            return
        for signum in numbers:
            handle = self._handlers.get(signum)
            if handle is None or handle.cancelled():
                continue
            if not self._loop._ready_handle(handle):  # another of these signals has queued it
                self._loop.call_soon(_run_again, handle)

    def enter_run(self) -> int | None:
        """The loop starts to run: in the main thread let signals wake it. What to hand to leave_run."""
        if threading.current_thread() is not threading.main_thread():
            return None
        try:
            previous = signal.set_wakeup_fd(-1)
            if any(pair[1].fileno() == previous for pair in _abandoned):
                previous = -1
            if previous != -1 and (self._pair is None or previous != self._pair[1].fileno()):
                # Somebody else listens (another loop's handlers, an embedding program): leave it to them,
                # a signal still ends the wait by EINTR.
                signal.set_wakeup_fd(previous)
                return None
            self._listen()
        except (ValueError, OSError):
            return None
        return previous

    def leave_run(self, previous: int | None) -> None:
        if previous == -1 and not self._handlers:
            self._hush()

    def close(self) -> None:
        """ValueError if there are handlers, which are the main thread's to take back, and this is another."""
        try:
            for signum in list(self._handlers):
                self.remove(signum)
        finally:
            self._handlers.clear()
            self._hush()
            self._drop_pair()

    def let_go(self) -> None:
        """The loop is closed: it is to be free as soon as nobody else holds it."""
        self._closed = True
        del self._loop


_living: weakref.WeakSet[Signals] = weakref.WeakSet()

# Of loops that were closed in another thread than the main one, which alone can tell the interpreter where to write.
_abandoned: list[tuple[socket.socket, socket.socket]] = []


def _after_fork_in_child() -> None:
    """The pairs are shared with the parent: a signal of the child must not be told to the parent's loop."""
    try:
        listening = signal.set_wakeup_fd(-1)
    except ValueError:
        return
    for signals in list(_living):
        if signals._pair is not None:
            signals._inherited = True
            signals._heard = False
            if signals._pair[1].fileno() == listening:
                listening = -1
            signals._leave_pair_to_parent()
    if listening != -1:
        signal.set_wakeup_fd(listening)


os.register_at_fork(after_in_child=_after_fork_in_child)
