"""Any io_uring operation as an awaitable: `await ops.submit(liburing.io_uring_prep_statx, buffer, path)`.

python-liburing prepares the entries. They run on a separate ring, whose eventfd the running loop watches; the core's
own ring is not involved.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from uringloop.files.loops import running_loop
from uringloop.ops.attached import Attached
from uringloop.ops.chain import Chain, Linked
from uringloop.ops.entry import Prepare
from uringloop.ops.flight import Completion

__all__ = ["Attached", "Chain", "Completion", "Linked", "attach", "chain", "multishot", "submit"]


def attach(ring: Any = None) -> Attached:
    """Attach a ring to the running loop: a new one, or your own `liburing.Ring`, which you still have to close."""
    return Attached(ring)


def _default() -> Attached:
    loop = running_loop()
    found: Attached | None = loop._ops_ring
    if found is None or found.closed:
        found = loop._ops_ring = Attached()
    return found


async def submit(
    prepare: Prepare, *args: Any, flags: int = 0, timeout: float | None = None, keep: object = None
) -> int:
    """`Attached.submit` on the running loop's default ring, which the first use makes.

    Prepares an entry with `prepare(sqe, *args)`, submits it, and returns the completion's result, or raises its error
    as OSError. After `timeout` seconds, the kernel cancels the operation, and this raises TimeoutError. Pass in `keep`
    whatever the arguments point to without holding a reference, such as the buffers of an Iovec."""
    return await _default().submit(prepare, *args, flags=flags, timeout=timeout, keep=keep)


def multishot(
    prepare: Prepare, *args: Any, flags: int = 0, keep: object = None
) -> AsyncGenerator[Completion, None]:
    """`Attached.multishot` on the running loop's default ring.

    Iterates over the completions of a multishot operation, until the kernel ends it; raises OSError if it failed.
    Closing the iterator (`aclose`, `contextlib.aclosing`) cancels the operation."""
    return _default().multishot(prepare, *args, flags=flags, keep=keep)


def chain() -> Chain:
    """`Attached.chain` on the running loop's default ring: operations that the kernel runs one after the other."""
    return _default().chain()
