"""Chain: operations that the kernel runs one after the other. Owns their descriptions until its block ends and submits
them; from then on the Attached owns the operations."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from uringloop.ops.entry import Order, Prepare
from uringloop.ops.flight import Flight

Start = Callable[[Sequence[Order]], list[Flight]]


class Linked:
    """One operation of a chain; it has a result once the chain's block has ended."""

    def __init__(self) -> None:
        self._flight: Flight | None = None

    def result(self) -> int:
        """Return the kernel's result, or raise its error as OSError: ECANCELED if the operation did not run because an
        earlier one failed."""
        if self._flight is None or not self._flight.done:
            raise asyncio.InvalidStateError("the chain has not run yet")
        return self._flight.result()


class Chain:
    """A chain of operations: `async with` submits it at the end of the block. `Attached.chain` makes it."""

    def __init__(self, start: Start, abandon: Callable[[Flight], None]) -> None:
        self._start = start
        self._abandon = abandon
        self._orders: list[Order] = []
        self._linked: list[Linked] = []
        self._over = False

    def submit(
        self,
        prepare: Prepare,
        *args: Any,
        flags: int = 0,
        timeout: float | None = None,
        keep: object = None,
    ) -> Linked:
        """Add an operation to the chain; arguments as for `Attached.submit`. Submits nothing before the block ends."""
        if self._over:
            raise RuntimeError("the chain's block has ended")
        self._orders.append(Order(prepare, args, flags, timeout, keep))
        self._linked.append(Linked())
        return self._linked[-1]

    async def __aenter__(self) -> Chain:
        if self._over:
            raise RuntimeError("the chain's block has ended")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over = True
        orders, self._orders = self._orders, []
        if kind is not None or not orders:
            return
        flights = self._start(orders)
        for linked, flight in zip(self._linked, flights, strict=True):
            linked._flight = flight
        try:
            for flight in flights:
                await flight.landed()
        except BaseException:
            for flight in flights:
                self._abandon(flight)
            raise
        _raise_failure(flights)


def _raise_failure(flights: list[Flight]) -> None:
    """Raise the error of the operation that failed, not of those that the kernel cancelled because of it."""
    failed = [flight for flight in flights if flight.failure]
    for flight in failed:
        if flight.failure != errno.ECANCELED:
            flight.result()
    if failed:
        failed[0].result()
