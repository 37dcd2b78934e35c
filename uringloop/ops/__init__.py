"""Any io_uring operation, awaited: `await ops.submit(liburing.io_uring_prep_statx, buffer, path)`.

python-liburing prepares the entries, on a ring of its own, whose eventfd the running loop watches. The core
is not involved: what it needs it does itself.
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
    """A ring for the running loop: a new one, or a `liburing.Ring` of yours, which stays yours."""
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
    """`Attached.submit` on the loop's own ring, made when first used."""
    return await _default().submit(prepare, *args, flags=flags, timeout=timeout, keep=keep)


def multishot(
    prepare: Prepare, *args: Any, flags: int = 0, keep: object = None
) -> AsyncGenerator[Completion, None]:
    """`Attached.multishot` on the loop's own ring."""
    return _default().multishot(prepare, *args, flags=flags, keep=keep)


def chain() -> Chain:
    """`Attached.chain` on the loop's own ring."""
    return _default().chain()
