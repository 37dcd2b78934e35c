"""Signals: add_signal_handler, and waking the loop for every signal that has a Python handler.

The interpreter's C handler writes each signal's number into one end of a pipe; the loop reads the other end
through the ring. So a signal wakes the loop whichever thread the kernel delivers it to, and the loop doesn't miss a
signal that arrives just before it goes to sleep."""

from __future__ import annotations

import inspect
import os
import signal
import threading
import weakref
from asyncio import coroutines
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uringloop._core.loop.handle import Handle
    from uringloop.loop import EventLoop

# Python 3.14 deprecates the public name and adds the private one, and Python 3.16 has neither. Both also recognise
# asyncio's own markers, which went before them.
_is_coroutine_function = (
    getattr(coroutines, "_iscoroutinefunction", None)
    or getattr(coroutines, "iscoroutinefunction", None)
    or inspect.iscoroutinefunction
)


def _ignore(signum: int, frame: object) -> None:
    """The Python-level handler of add_signal_handler. Does nothing: the number in the pipe is enough."""


def _run_again(handle: Handle) -> None:
    if not handle.cancelled():
        handle._run()


def _close(pair: tuple[int, int]) -> None:
    for end in pair:
        os.close(end)


class Signals:
    """The signal handlers of one loop."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._handlers: dict[int, Handle] = {}
        self._pair: tuple[int, int] | None = None
        self._inherited = False  # the pair belongs to a parent process
        self._heard = False  # the interpreter still writes signal numbers to the pair
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
            signal.siginterrupt(signum, False)  # restart interrupted system calls of other threads
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
        """Make the interpreter write to our pipe. Raises ValueError outside the main thread."""
        if self._inherited:
            self._drop_pair()
        made = self._pair is None
        if self._pair is None:
            self._pair = os.pipe2(
                os.O_NONBLOCK | os.O_CLOEXEC
            )  # a socket pair takes twice as long to make and close
        try:
            signal.set_wakeup_fd(self._pair[1])
        except ValueError:
            if made:
                self._drop_pair()
            raise
        self._heard = True
        while _abandoned:  # the interpreter no longer writes to these
            _close(_abandoned.pop())
        if made:
            self._loop._add_reader(self._pair[0], self._arrived)

    def _drop_pair(self) -> None:
        self._inherited = False
        if self._pair is None:
            return
        pair, self._pair = self._pair, None
        if not self._loop.is_closed():
            self._loop._remove_reader(pair[0])
        if self._heard:  # the interpreter writes to this number, so no other file may get it
            _abandoned.append(pair)
            return
        _close(pair)

    def _leave_pair_to_parent(self) -> None:
        """In a child process that was forked inside a turn of the loop and may continue it: leave the pair to the
        parent. If the child runs another turn, that turn makes a pair of its own."""
        if self._pair is not None and self._loop._thread_id == threading.get_ident():
            self._loop._remove_reader(self._pair[0])
            self._loop.call_soon(self._listen_in_child)

    def _listen_in_child(self) -> None:
        with suppress(
            ValueError, OSError
        ):  # not the main thread, or out of descriptors: the child goes on without a pair
            if self._inherited:
                self._listen()

    def _hush(self) -> None:
        if self._pair is None:
            return
        try:
            listening = signal.set_wakeup_fd(-1)
            if listening != self._pair[1]:
                signal.set_wakeup_fd(listening)  # the descriptor of another loop or library
        except (ValueError, OSError):
            return  # not in the main thread, or the interpreter is shutting down
        self._heard = False

    def _arrived(self) -> None:
        assert self._pair is not None
        try:
            numbers = os.read(self._pair[0], 4096)
        except (BlockingIOError, InterruptedError):
            return
        for signum in numbers:
            handle = self._handlers.get(signum)
            if handle is None or handle.cancelled():
                continue
            if not self._loop._ready_handle(handle):  # already queued, by an earlier signal in `numbers`
                self._loop.call_soon(_run_again, handle)

    def enter_run(self) -> int | None:
        """The loop starts to run: in the main thread, let signals wake it. Return the argument for leave_run."""
        if threading.current_thread() is not threading.main_thread():
            return None
        try:
            previous = signal.set_wakeup_fd(-1)
            if any(pair[1] == previous for pair in _abandoned):
                previous = -1
            if previous != -1 and (self._pair is None or previous != self._pair[1]):
                # Another loop's handlers or an embedding program use the wakeup descriptor: leave it to them. A
                # signal still ends the loop's wait with EINTR.
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
        """Remove all handlers. Raises ValueError if there are any and this is not the main thread, which alone may
        remove them."""
        try:
            for signum in list(self._handlers):
                self.remove(signum)
        finally:
            self._handlers.clear()
            self._hush()
            self._drop_pair()

    def let_go(self) -> None:
        """Drop the reference to the closed loop, so that no cycle keeps the loop alive."""
        self._closed = True
        del self._loop


_living: weakref.WeakSet[Signals] = weakref.WeakSet()

# Pairs of loops that were closed outside the main thread; only the main thread can stop the interpreter's writes.
_abandoned: list[tuple[int, int]] = []


def _after_fork_in_child() -> None:
    """Stop writing to the pairs, which the child shares with the parent: a signal to the child must not reach the
    parent's loop."""
    try:
        listening = signal.set_wakeup_fd(-1)
    except ValueError:
        return
    for signals in list(_living):
        if signals._pair is not None:
            signals._inherited = True
            signals._heard = False
            if signals._pair[1] == listening:
                listening = -1
            signals._leave_pair_to_parent()
    if listening != -1:
        signal.set_wakeup_fd(listening)


os.register_at_fork(after_in_child=_after_fork_in_child)
