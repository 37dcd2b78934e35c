"""Any io_uring operation, awaited: `await ops.submit(liburing.io_uring_prep_statx, buffer, path)`.

python-liburing prepares the entries, on a ring of its own, whose eventfd the running loop watches. Owns
every object an operation was given until its last completion, whoever still waits for it; and the ring,
unless that is the user's. The core is not involved: what it needs it does itself.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from uringloop.errors import UringUnavailable
from uringloop.files.loops import running_loop

try:
    import liburing  # type: ignore[import-untyped,unused-ignore]
except ImportError as error:
    raise ImportError(
        "uringloop.ops needs python-liburing, for Linux 6.14 or later on x86-64: "
        "pip install 'uringloop-asyncio[liburing]'"
    ) from error

ENTRIES = 256
LINK = liburing.IOSQE_IO_LINK
MORE = liburing.IORING_CQE_F_MORE
# Their result is a descriptor, which somebody has to close.
OPENING = {
    int(liburing.io_uring_op[f"IORING_OP_{name}"]) for name in ("OPENAT", "OPENAT2", "ACCEPT", "SOCKET")
}

Prepare = Callable[..., Any]


class Completion(NamedTuple):
    """What the kernel says of an operation: its result, not negative, and the completion's flags."""

    result: int
    flags: int


class Flight:
    """One entry in the kernel: what it was given, and who wants to know what comes of it."""

    __slots__ = ("completions", "done", "failure", "keep", "opens", "waiter", "wanted")

    def __init__(self, keep: list[Any]) -> None:
        self.keep = keep
        self.completions: deque[Completion] = deque()
        self.failure = 0
        self.done = False  # the last completion has come
        self.wanted = True
        self.opens = False
        self.waiter: asyncio.Future[None] | None = None

    def complete(self, result: int, flags: int) -> None:
        self.done = not flags & MORE
        if self.done:
            self.keep = []
        if not self.wanted:
            if self.opens and result >= 0:
                os.close(result)
            return
        if result < 0:
            self.failure = -result
        else:
            self.completions.append(Completion(result, flags))
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    async def more(self) -> None:
        """Another completion has come."""
        while not self.completions and not self.done:
            self.waiter = asyncio.get_running_loop().create_future()
            await self.waiter

    def result(self) -> int:
        if self.failure:
            raise OSError(self.failure, os.strerror(self.failure))
        return self.completions.popleft().result


def held(value: Any) -> Any:
    """A reference that also keeps a bytearray from being resized while the kernel has its address."""
    try:
        return memoryview(value)
    except TypeError:
        return value


class Attached:
    """A python-liburing ring whose completions the running loop awaits; made by `attach`."""

    def __init__(self, ring: Any = None) -> None:
        self._loop = running_loop()
        self._owned = ring is None
        self._ring = liburing.Ring() if ring is None else ring
        if ring is None:
            try:
                liburing.io_uring_queue_init(ENTRIES, self._ring)
            except OSError as error:
                if error.errno in (errno.EPERM, errno.EACCES, errno.ENOSYS):
                    raise UringUnavailable(
                        error.errno, f"io_uring is refused here: {error.strerror}"
                    ) from None
                raise
        self._cqe = liburing.Cqe()
        self._flights: dict[int, Flight] = {}
        self._last = 0
        self._queued = False
        self._closed = False
        self._eventfd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            liburing.io_uring_register_eventfd(self._ring, self._eventfd)
            self._loop.add_reader(self._eventfd, self._reap)
        except BaseException:
            self._give_back()
            raise
        self._loop._at_close.append(self.close)

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{len(self._flights)} in the kernel"
        return f"<{type(self).__name__} ring={self._ring.ring_fd} {state}>"

    # One operation

    async def submit(self, prepare: Prepare, *args: Any, flags: int = 0, timeout: float | None = None) -> int:
        """Prepare an entry with `prepare(sqe, *args)`, submit it, and return the completion's result, or raise
        the OSError. With `timeout`, in seconds, the kernel ends it by itself then: TimeoutError."""
        flight = self._start([(prepare, args, flags)], timeout)[0]
        await self._landed(flight)
        if flight.failure == errno.ECANCELED and timeout is not None:
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        return flight.result()

    async def multishot(self, prepare: Prepare, *args: Any, flags: int = 0) -> AsyncIterator[Completion]:
        """The completions of an operation that has many. It ends when the kernel ends it, with the OSError
        if that is a failure; leaving the iterator (`aclose`, `contextlib.aclosing`) cancels it."""
        flight = self._start([(prepare, args, flags)], None)[0]
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
        """Operations that run one after the other, each only if the one before succeeded:

        async with ops.chain() as chain:
            written = chain.submit(liburing.io_uring_prep_write, fd, data, 0)
            chain.submit(liburing.io_uring_prep_fsync, fd)
        print(written.result())
        """
        return Chain(self)

    # Inside

    def _start(
        self, entries: list[tuple[Prepare, tuple[Any, ...], int]], timeout: float | None
    ) -> list[Flight]:
        """Write entries that stand together, all linked to the next."""
        if self._closed:
            raise RuntimeError("the ring is no longer attached to an event loop")
        needed = len(entries) + (timeout is not None)
        if liburing.io_uring_sq_space_left(self._ring) < needed:
            self._flush()
            if liburing.io_uring_sq_space_left(self._ring) < needed:
                raise ValueError(f"the ring has no room for {needed} entries at once")
        flights: list[Flight] = []
        for i, (prepare, args, flags) in enumerate(entries):
            sqe = liburing.io_uring_get_sqe(self._ring)
            flight = self._flight([held(arg) for arg in args])
            try:
                prepare(sqe, *args)
            except BaseException:
                # The entry is the ring's already: let it be one that does nothing.
                liburing.io_uring_prep_nop(sqe)
                sqe.user_data = 0
                del self._flights[self._last]
                for started in flights:
                    self._abandon(started)
                raise
            sqe.user_data = self._last
            sqe.flags |= flags
            if i + 1 < needed:
                sqe.flags |= LINK
            flight.opens = sqe.opcode in OPENING
            flights.append(flight)
        if timeout is not None:
            limit = liburing.timespec(timeout)
            sqe = liburing.io_uring_get_sqe(self._ring)
            timer = self._flight([limit])
            timer.wanted = False
            liburing.io_uring_prep_link_timeout(sqe, limit, 0)
            sqe.user_data = self._last
        if not self._queued:
            # Everything of this turn enters the kernel in one system call.
            self._queued = True
            self._loop.call_soon(self._flush)
        return flights

    def _flight(self, keep: list[Any]) -> Flight:
        self._last += 1
        flight = self._flights[self._last] = Flight(keep)
        return flight

    def _flush(self) -> None:
        self._queued = False
        if not self._closed:
            liburing.io_uring_submit(self._ring)

    async def _landed(self, flight: Flight) -> None:
        """The last completion has come; a cancelled wait takes the operation back."""
        try:
            while not flight.done:
                flight.waiter = self._loop.create_future()
                await flight.waiter
        except BaseException:
            self._abandon(flight)
            raise

    def _abandon(self, flight: Flight) -> None:
        """Ask the kernel to end it. What it was given stays until it says that it has."""
        flight.wanted = False
        while flight.completions:
            result = flight.completions.popleft().result
            if flight.opens:
                os.close(result)
        if flight.done or self._closed:
            return
        token = next(token for token, other in self._flights.items() if other is flight)
        if not liburing.io_uring_sq_space_left(self._ring):
            liburing.io_uring_submit(self._ring)
        sqe = liburing.io_uring_get_sqe(self._ring)
        liburing.io_uring_prep_cancel64(sqe, token, 0)
        sqe.user_data = 0
        liburing.io_uring_submit(self._ring)

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            os.eventfd_read(self._eventfd)
        self._walk()

    def _walk(self) -> None:
        while True:
            with suppress(BlockingIOError):
                liburing.io_uring_peek_cqe(self._ring, self._cqe)  # also brings in what there was no room for
            ready = liburing.io_uring_cq_ready(self._ring)
            if not ready:
                break
            arrived = []
            for i in range(ready):
                entry = self._cqe[i]
                try:
                    result = entry.res
                except OSError as error:
                    result = -(error.errno or errno.EIO)
                arrived.append((entry.user_data, result, entry.flags))
            liburing.io_uring_cq_advance(self._ring, ready)
            for token, result, flags in arrived:
                flight = self._flights.get(token)
                if flight is not None:
                    if not flags & MORE:
                        del self._flights[token]
                    flight.complete(result, flags)

    # The end

    def close(self) -> None:
        """Cancel and drain what is in the kernel, and detach; the ring itself is closed unless it is the
        user's."""
        if self._closed:
            return
        liburing.io_uring_submit(self._ring)
        for flight in list(self._flights.values()):
            self._abandon(flight)
        while self._flights:
            liburing.io_uring_wait_cqe(self._ring, self._cqe)
            self._walk()
        self._closed = True
        self._loop.remove_reader(self._eventfd)
        with suppress(ValueError):
            self._loop._at_close.remove(self.close)
        liburing.io_uring_unregister_eventfd(self._ring)
        self._give_back()

    def _give_back(self) -> None:
        os.close(self._eventfd)
        if self._owned:
            liburing.io_uring_queue_exit(self._ring)


class Linked:
    """One operation of a chain: its result is there when the chain's block has ended."""

    def __init__(self) -> None:
        self._flight: Flight | None = None

    def result(self) -> int:
        if self._flight is None or not self._flight.done:
            raise asyncio.InvalidStateError("the chain has not run yet")
        return self._flight.result()


class Chain:
    def __init__(self, attached: Attached) -> None:
        self._attached = attached
        self._entries: list[tuple[Prepare, tuple[Any, ...], int]] = []
        self._linked: list[Linked] = []

    def submit(self, prepare: Prepare, *args: Any, flags: int = 0) -> Linked:
        """The next operation; nothing is submitted before the block ends."""
        self._entries.append((prepare, args, flags))
        self._linked.append(Linked())
        return self._linked[-1]

    async def __aenter__(self) -> Chain:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None or not self._entries:
            return
        flights = self._attached._start(self._entries, None)
        for linked, flight in zip(self._linked, flights, strict=True):
            linked._flight = flight
        try:
            for flight in flights:
                await self._attached._landed(flight)
        except BaseException:
            for flight in flights:
                self._attached._abandon(flight)
            raise
        # The one that failed, not those that were cancelled because of it.
        failures = [flight for flight in flights if flight.failure]
        for flight in failures:
            if flight.failure != errno.ECANCELED:
                flight.result()
        if failures:
            failures[0].result()


_attached: WeakKeyDictionary[Any, Attached] = WeakKeyDictionary()


def attach(ring: Any = None) -> Attached:
    """A ring for the running loop: a new one, or a `liburing.Ring` of yours, which stays yours."""
    return Attached(ring)


def _default() -> Attached:
    loop = running_loop()
    found = _attached.get(loop)
    if found is None or found._closed:
        found = _attached[loop] = Attached()
    return found


async def submit(prepare: Prepare, *args: Any, flags: int = 0, timeout: float | None = None) -> int:
    """`Attached.submit` on the loop's own ring, made when first used."""
    return await _default().submit(prepare, *args, flags=flags, timeout=timeout)


def multishot(prepare: Prepare, *args: Any, flags: int = 0) -> AsyncIterator[Completion]:
    """`Attached.multishot` on the loop's own ring."""
    return _default().multishot(prepare, *args, flags=flags)


def chain() -> Chain:
    """`Attached.chain` on the loop's own ring."""
    return _default().chain()
