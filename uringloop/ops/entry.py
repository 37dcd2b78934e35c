"""Submission entries, prepared by python-liburing in memory of our own. Entries that belong together enter the ring
only when all are complete, so an exception during preparation leaves no partial entry in the ring, which would run with
the entries of another caller."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from uringloop.ops.package import liburing

LINK = int(liburing.IOSQE_IO_LINK)
LINKS = LINK | int(liburing.IOSQE_IO_HARDLINK)
SILENT = int(liburing.IOSQE_CQE_SKIP_SUCCESS)
LONGEST = 2.0**31  # seconds; a longer timeout counts as this one
# Operations whose result is a descriptor, which has to be closed if no caller takes it.
OPENING = {
    int(liburing.io_uring_op[f"IORING_OP_{name}"])
    for name in ("OPENAT", "OPENAT2", "ACCEPT", "SOCKET", "FIXED_FD_INSTALL")
}

Prepare = Callable[..., Any]


class Order(NamedTuple):
    """One operation as its user describes it."""

    prepare: Prepare
    args: tuple[Any, ...]
    flags: int = 0
    timeout: float | None = None
    keep: object = None


class Prepared(NamedTuple):
    """An entry, and the objects that it points to."""

    sqe: Any
    keep: tuple[Any, ...]
    opens: bool  # its result is a descriptor
    limits: bool  # it is the timeout of the entry before it


def prepared(orders: Sequence[Order]) -> tuple[Any, list[Prepared]]:
    """Prepare the entries of operations that belong together. Each is linked to the next; a timeout follows the entry
    that it limits. Return the memory that holds them, and the entries."""
    limits = [None if order.timeout is None else limit(order.timeout) for order in orders]
    count = len(orders) + sum(found is not None for found in limits)
    memory = liburing.Sqe(count)
    entries: list[Prepared] = []

    def add(entry: Prepared) -> None:
        entries.append(entry)
        if len(entries) < count:
            entry.sqe.flags |= LINK

    for order, until in zip(orders, limits, strict=True):
        sqe = memory[len(entries)]
        args = [os.fspath(arg) if isinstance(arg, os.PathLike) else arg for arg in order.args]
        keep = (*map(held, args), order.keep)
        order.prepare(sqe, *args)
        sqe.flags |= order.flags
        if sqe.flags & SILENT:
            raise ValueError("IOSQE_CQE_SKIP_SUCCESS: the kernel would not report the operation's end")
        if until is None and order is orders[-1] and sqe.flags & LINKS:
            raise ValueError("the last operation has nothing to link to: use chain() to link operations")
        add(Prepared(sqe, keep, opens(order.prepare, sqe.opcode), False))
        if until is not None:
            sqe = memory[len(entries)]
            liburing.io_uring_prep_link_timeout(sqe, until, 0)
            add(Prepared(sqe, (until,), False, True))
    return memory, entries


def opens(prepare: Prepare, opcode: int) -> bool:
    """Whether the result is a descriptor. The result of a `direct` operation is an index in the ring's own table. A
    function that isn't python-liburing's could be of either kind; for it, the answer is no: it is better to leave a
    descriptor open than to close an unrelated one."""
    known = getattr(liburing, getattr(prepare, "__name__", ""), None) is prepare
    return opcode in OPENING and known and "direct" not in prepare.__name__


def limit(timeout: float) -> Any:
    """The timeout as the kernel takes it."""
    if isinstance(timeout, str | bytes | bytearray):
        raise TypeError(f"timeout must be seconds, not {type(timeout).__name__!r}")  # float() would accept it
    seconds = float(timeout)
    if math.isnan(seconds):
        raise ValueError("timeout is not a number")
    return liburing.timespec(min(max(seconds, 0.0), LONGEST))


def cancelling(token: int) -> Any:
    """An entry that cancels the operation with this user_data."""
    sqe = liburing.Sqe()
    liburing.io_uring_prep_cancel64(sqe, token, 0)
    return sqe


def held(value: Any) -> Any:
    """A reference that also keeps a bytearray from being resized while the kernel has its address."""
    try:
        return memoryview(value)
    except TypeError:
        return value
