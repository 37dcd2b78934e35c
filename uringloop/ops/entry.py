"""Entries: what io_uring is asked to do, prepared by python-liburing in memory of our own. Nothing is in a ring
before all that belong together are whole: what raises while preparing leaves no half of an entry behind, to run
with somebody else's."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from uringloop.ops.package import liburing

LINK = int(liburing.IOSQE_IO_LINK)
LINKS = LINK | int(liburing.IOSQE_IO_HARDLINK)
SILENT = int(liburing.IOSQE_CQE_SKIP_SUCCESS)
LONGEST = 2.0**31  # seconds; who waits longer waits for ever
# Their result is a descriptor, which somebody has to close.
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
    """An entry, and what it refers to."""

    sqe: Any
    keep: tuple[Any, ...]
    opens: bool
    limits: bool  # the one before it


def prepared(orders: Sequence[Order]) -> tuple[Any, list[Prepared]]:
    """The entries of operations that stand together, each linked to the next, a timeout behind the one it
    limits; and, first, the memory they are in."""
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
            raise ValueError("IOSQE_CQE_SKIP_SUCCESS: nobody would learn that the operation has ended")
        if until is None and order is orders[-1] and sqe.flags & LINKS:
            raise ValueError("a link to nothing: operations that belong together are those of a chain()")
        add(Prepared(sqe, keep, opens(order.prepare, sqe.opcode), False))
        if until is not None:
            sqe = memory[len(entries)]
            liburing.io_uring_prep_link_timeout(sqe, until, 0)
            add(Prepared(sqe, (until,), False, True))
    return memory, entries


def opens(prepare: Prepare, opcode: int) -> bool:
    """Whether its result is a descriptor. That of the `direct` ones is a number of the ring's own table; a function
    that is not python-liburing's could be of either kind, and then it is better to leave one open than to close
    another's."""
    known = getattr(liburing, getattr(prepare, "__name__", ""), None) is prepare
    return opcode in OPENING and known and "direct" not in prepare.__name__


def limit(timeout: float) -> Any:
    """As the kernel takes it."""
    if isinstance(timeout, str | bytes | bytearray):
        raise TypeError(f"timeout must be seconds, not {type(timeout).__name__!r}")  # float would read it
    seconds = float(timeout)
    if math.isnan(seconds):
        raise ValueError("timeout is not a number")
    return liburing.timespec(min(max(seconds, 0.0), LONGEST))


def cancelling(token: int) -> Any:
    """An entry that ends the operation of that name."""
    sqe = liburing.Sqe()
    liburing.io_uring_prep_cancel64(sqe, token, 0)
    return sqe


def held(value: Any) -> Any:
    """A reference that also keeps a bytearray from being resized while the kernel has its address."""
    try:
        return memoryview(value)
    except TypeError:
        return value
