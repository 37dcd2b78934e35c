"""Attached: a python-liburing ring that a loop serves. Owns the operations that it has in the kernel, and the ring,
unless the user passed it in."""

from __future__ import annotations

import errno
import os
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from typing import Any

from uringloop._core.kernel import restriction
from uringloop._core.kernel.probe import locked_memory, offered, restricted
from uringloop.errors import UringUnavailable
from uringloop.files.loops import running_loop
from uringloop.ops.chain import Chain
from uringloop.ops.entry import Order, Prepare, cancelling, prepared
from uringloop.ops.flight import MORE, Completion, Flight
from uringloop.ops.package import liburing

ENTRIES = 256
FIRST_TOKEN = 1 << 62  # far from the user_data of entries that the user may put into a ring of their own
LATER = {errno.EAGAIN, errno.EBUSY, errno.EINTR}
PAUSE = 0.001  # seconds before a retry, when the kernel has no memory

# The flights of rings that were closed with operations in the kernel. They are kept forever: without the ring, nothing
# reports when the kernel has ended an operation and no longer uses its memory.
_lost: list[object] = []

_living: weakref.WeakSet[Attached] = weakref.WeakSet()


class Attached:
    """A python-liburing ring attached to the running loop. `attach` makes it."""

    def __init__(self, ring: Any = None) -> None:
        self._loop = running_loop()
        self._owned = ring is None
        self._allowed = restriction.ops_operations() if self._owned and restricted() else None
        self._ring = _new_ring() if ring is None else _checked(ring)
        self._polled = bool(self._ring.flags & liburing.IORING_SETUP_SQPOLL)
        self._deferred = bool(self._ring.flags & liburing.IORING_SETUP_DEFER_TASKRUN)
        self._cqe = liburing.Cqe()
        self._flights: dict[int, Flight] = {}
        self._arrived: deque[tuple[int, int, int]] = deque()
        self._fresh: list[Flight] = []  # in the submission queue, and not yet taken by the kernel
        self._last = FIRST_TOKEN
        self._queued = False
        self._closed = False
        self._eventfd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            liburing.io_uring_register_eventfd(self._ring, self._eventfd)
            self._loop.add_reader(self._eventfd, self._reap)
        except BaseException:
            self._give_back()
            raise
        self._loop._at_close.append(self._loop_closes)
        _living.add(self)

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{len(self._flights)} in the kernel"
        return f"<{type(self).__name__} ring={self._ring.ring_fd} {state}>"

    @property
    def closed(self) -> bool:
        return self._closed

    # Operations

    async def submit(
        self,
        prepare: Prepare,
        *args: Any,
        flags: int = 0,
        timeout: float | None = None,
        keep: object = None,
    ) -> int:
        """Prepare an entry with `prepare(sqe, *args)`, submit it, and return the completion's result, or raise its
        error as OSError. After `timeout` seconds, the kernel cancels the operation, and this raises TimeoutError. Pass
        in `keep` whatever the arguments point to without holding a reference, such as the buffers of an Iovec."""
        flight = self._start([Order(prepare, args, flags, timeout, keep)])[0]
        try:
            await flight.landed()
        except BaseException:
            self._abandon(flight)
            raise
        return flight.result()

    async def multishot(
        self, prepare: Prepare, *args: Any, flags: int = 0, keep: object = None
    ) -> AsyncGenerator[Completion, None]:
        """Iterate over the completions of a multishot operation, until the kernel ends it; raises OSError if it failed.
        Closing the iterator (`aclose`, `contextlib.aclosing`) cancels the operation."""
        flight = self._start([Order(prepare, args, flags, None, keep)])[0]
        try:
            while True:
                await flight.more()
                while flight.completions:
                    yield flight.completions.popleft()
                if flight.done:
                    break
            if flight.failure:
                flight.result()
        finally:
            self._abandon(flight)

    def chain(self) -> Chain:
        """Return a chain of operations, of which the kernel runs each only if the one before succeeded:

        async with ops.chain() as chain:
            written = chain.submit(liburing.io_uring_prep_write, fd, data, 0)
            chain.submit(liburing.io_uring_prep_fsync, fd)
        print(written.result())
        """
        return Chain(self._start, self._abandon)

    # Into the kernel

    def _start(self, orders: Sequence[Order]) -> list[Flight]:
        """Put the operations into the ring, all or none; they enter the kernel at the end of the turn."""
        if self._closed or not self._exists():
            raise RuntimeError("the ring is no longer attached to an event loop")
        memory, entries = prepared(orders)
        started: list[Flight] = []
        names: list[Flight] = []
        for sqe, keep, opens, limits in entries:
            self._last += 1
            sqe.user_data = self._last
            flight = Flight(self._last, keep, opens)
            if self._allowed is not None:
                flight.forbidden = restriction.refusal_of(sqe.opcode, sqe.flags, self._allowed)
            names.append(flight)
            if limits:
                started[-1].timer = flight
            else:
                if started:
                    started[-1].follower = flight
                started.append(flight)
        self._put(memory, len(entries))
        self._flights.update((flight.token, flight) for flight in names)
        self._fresh += names
        if not self._queued:
            # Everything of this turn enters the kernel in one system call.
            self._queued = True
            self._loop.call_soon(self._flush)
        return started

    def _put(self, memory: Any, count: int) -> None:
        if liburing.put_sqe(self._ring, memory):
            return
        self._enter()
        if self._polled:
            liburing.io_uring_sqring_wait(self._ring)
        if not liburing.put_sqe(self._ring, memory):
            raise ValueError(f"the ring has no room for {count} entries at once")

    def _flush(self) -> None:
        self._queued = False
        if self._closed or not self._exists():
            return
        try:
            self._enter()
        except OSError as error:
            if error.errno in LATER:
                self._queued = True
                self._loop.call_later(PAUSE, self._flush)
                self._walk()  # the completion queue may have been full
            else:
                refused, self._fresh = self._fresh, []
                for flight in refused:
                    flight.fail(error.errno or errno.EIO)

    def _enter(self) -> None:
        # Repeat: the kernel stops at an entry that it refuses, and leaves those behind it in the queue.
        while liburing.io_uring_submit(self._ring) and not self._polled:
            if not liburing.io_uring_sq_ready(self._ring):
                break
        self._fresh = []

    def _abandon(self, flight: Flight) -> None:
        """Ask the kernel to cancel the operation. Its memory stays until the kernel reports that it has ended."""
        flight.let_go()
        self._cancel(flight)

    def _cancel(self, flight: Flight) -> None:
        if flight.token not in self._flights or not self._exists():
            return
        try:
            self._put(cancelling(flight.token), 1)
            self._enter()
        except OSError:
            if not self._queued and not self._closed:
                self._queued = True
                self._loop.call_later(PAUSE, self._flush)

    # Out of it

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            os.eventfd_read(self._eventfd)
        self._walk()

    def _walk(self) -> None:
        while self._exists():
            if self._deferred:
                liburing.io_uring_get_events(self._ring)
            with suppress(BlockingIOError):
                liburing.io_uring_peek_cqe(self._ring, self._cqe)  # also flushes the kernel's overflow list
            count = 0
            entries = liburing.CqeIter(self._ring, self._cqe)  # handles the wrap-around of the queue
            # A for-loop over CqeIter crashes Python 3.15 (seen with liburing 2026.3).
            while next(entries, None) is not None:
                entry = self._cqe[0]
                try:
                    result = entry.res
                except OSError as error:
                    result = -(error.errno or errno.EIO)
                self._arrived.append((entry.user_data, result, entry.flags))
                count += 1
            liburing.io_uring_cq_advance(self._ring, count)
            if not self._arrived:
                return
            while self._arrived:
                self._completed(*self._arrived.popleft())

    def _completed(self, token: int, result: int, flags: int) -> None:
        flight = self._flights.get(token)
        if flight is None:
            return  # the completion of a cancel request, or of an entry that the user put into the ring
        if not flags & MORE:
            del self._flights[token]
        flight.complete(result, flags)
        if flight.done and flight.follower is not None and (self._closed or not flight.wanted):
            self._cancel(flight.follower)  # the kernel finds a linked operation only once that has begun

    # The end

    def close(self) -> None:
        """Cancel the operations in the kernel, wait until they have ended, and detach from the loop. Tasks that await
        an operation get its outcome. The ring itself is closed, unless the user passed it in."""
        self._end(True)

    def _loop_closes(self) -> None:
        self._end(False)

    def _end(self, wanted: bool) -> None:
        if self._closed:
            return
        self._closed = True
        interrupted = self._drain(wanted)
        self._loop.remove_reader(self._eventfd)
        with suppress(ValueError):
            self._loop._at_close.remove(self._loop_closes)
        if self._loop._ops_ring is self:
            self._loop._ops_ring = None
        if self._exists():
            with suppress(OSError):
                liburing.io_uring_unregister_eventfd(self._ring)
        self._give_back()
        if interrupted is not None:
            raise interrupted

    def _drain(self, wanted: bool) -> BaseException | None:
        """Wait until no operation is in the kernel. Return an exception that interrupted this, for the caller to raise:
        no memory may be freed before the last operation has ended."""
        interrupted: BaseException | None = None
        for flight in list(self._flights.values()):
            if not wanted:
                flight.let_go()
            self._cancel(flight)
        while self._flights and self._exists():
            try:
                self._enter()
                liburing.io_uring_wait_cqe(self._ring, self._cqe)
                self._walk()
            except OSError as error:
                if error.errno not in LATER:
                    break  # the ring was never enabled, or belongs to another thread
                self._walk()
            except BaseException as error:
                interrupted = error
        if self._flights:
            for flight in self._flights.values():
                flight.fail(errno.ECANCELED)
            _lost.append(self._flights)
            self._flights = {}
        return interrupted

    def _leave_to_parent(self) -> None:
        """In a forked child: detach. The child shares ring and eventfd with the parent, and would take completions
        away from it."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._eventfd)
        if self._loop._ops_ring is self:
            self._loop._ops_ring = None  # the child makes its own when it needs one
        flights, self._flights = self._flights, {}
        for flight in flights.values():
            flight.fail(errno.ECANCELED)
        self._give_back()

    def _exists(self) -> bool:
        return bool(self._ring.ring_fd > 0)

    def _give_back(self) -> None:
        os.close(self._eventfd)
        if self._owned:
            liburing.io_uring_queue_exit(self._ring)


def _new_ring() -> Any:
    ring = liburing.Ring()
    if restricted() and not offered()["restrictions"]:
        raise UringUnavailable(
            errno.ENOSYS, "URINGLOOP_RESTRICT asks for a restricted ring, which is not offered here"
        )
    try:
        liburing.io_uring_queue_init(ENTRIES, ring, liburing.IORING_SETUP_R_DISABLED if restricted() else 0)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES, errno.ENOSYS):
            raise UringUnavailable(error.errno, f"io_uring is refused here: {error.strerror}") from None
        short = locked_memory(error)
        if short is not None:
            _, cause, remedy = short
            raise UringUnavailable(
                error.errno, f"io_uring is refused here: {cause}. To allow it: {remedy}"
            ) from None
        raise
    if restricted():
        try:
            restriction.restrict_ops(ring.ring_fd)
            liburing.io_uring_enable_rings(ring)
        except BaseException:
            liburing.io_uring_queue_exit(ring)
            raise
    return ring


def _checked(ring: Any) -> Any:
    if not isinstance(ring, liburing.Ring):
        raise TypeError(f"a liburing.Ring is required, not {type(ring).__name__!r}")
    if ring.ring_fd <= 0:
        raise ValueError("the ring is not set up, or was closed")
    if ring.flags & liburing.IORING_SETUP_IOPOLL:
        raise ValueError("the completions of a ring with IORING_SETUP_IOPOLL are not announced")
    return ring


def _after_fork_in_child() -> None:
    for attached in list(_living):
        attached._leave_to_parent()


os.register_at_fork(after_in_child=_after_fork_in_child)
