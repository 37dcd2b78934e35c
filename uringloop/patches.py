"""Clear errors for libraries that patch asyncio's own loop. They rely on parts of `BaseEventLoop._run_once`, which
uringloop's loops don't use; our loop tells them so, and goes on working."""

from __future__ import annotations

import selectors
import sys
import warnings
from typing import TYPE_CHECKING, Any

from uringloop._core.loop.loop import Loop
from uringloop.net.readers import Readers, descriptor

if TYPE_CHECKING:
    from uringloop.loop import EventLoop

_FARTHEST_CLOCK = 1.0  # seconds; the two clocks are read one after the other, so equal ones differ a little


class NoSelector:
    """The loop's `_selector`. looptime's pytest plugin replaces its `select` in every loop, also in tests that don't
    use looptime. asyncio's pipe transports call `get_key` to show in their repr which events are polled."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        fd = descriptor(fileobj)
        events = self._readers.events(fd)
        if not events:
            raise KeyError(f"{fileobj!r} is not registered")
        return selectors.SelectorKey(fileobj, fd, events, None)

    def select(self, timeout: float | None = None) -> Any:
        raise RuntimeError("uringloop has no selector: its loop sleeps in the kernel, not in select()")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"uringloop has no selector, so _selector has no {name!r}")


def nest_patched(loop: EventLoop) -> bool:
    """`_nest_patched`: nest_asyncio reads it before it replaces methods of the loop's class with methods that need
    `_selector` and `_ready`. After that, no loop of the process would run."""
    asking = sys._getframe(2)  # below the property
    if asking.f_code.co_name != "_patch_loop":
        raise AttributeError("_nest_patched")
    if asking.f_back is not None and asking.f_back.f_code.co_name == "get_event_loop":
        return True  # a call of the policy's get_event_loop, which nest_asyncio has patched before we refused
    raise ValueError(
        f"Can't patch loop of type {type(loop)}: nest_asyncio replaces what asyncio's own loop runs by. "
        "Nested run_until_complete() needs asyncio's loop, or a loop of its own in another thread"
    )


def check_clock(loop: EventLoop) -> None:
    """Warn once per loop if tests have replaced `time()` with another clock: timers still use the loop's own."""
    apart = abs(loop.time() - Loop.time(loop))
    if apart > _FARTHEST_CLOCK and not loop._clock_warned:
        loop._clock_warned = True
        warnings.warn(
            f"{type(loop).__name__}.time() was replaced by a clock {apart:.0f} s apart from the loop's own, which its"
            " timers go by: call_at() and asyncio.timeout() will be wrong. Such tests need asyncio's own loop",
            RuntimeWarning,
            stacklevel=3,
        )
