"""Makes a chosen loop the one that asyncio's own entry points hand out, in a test process only.

The stock names (`SelectorEventLoop`, `EventLoop`, `new_event_loop` through the default policy) are
redirected, because suites written for asyncio make their loops by those names. `BaseEventLoop`,
`BaseSelectorEventLoop` and the `asyncio.*` submodules stay as they are: a test that goes there is a test of
the stock loop's inside.
"""

from __future__ import annotations

import asyncio
import asyncio.unix_events
import contextlib
import weakref
from typing import Any, ClassVar

from compat import loops


class LoopCount:
    """The loops that the candidate's factory has made here: tell which tests used the candidate at all."""

    made = 0
    alive: ClassVar[weakref.WeakSet[asyncio.AbstractEventLoop]] = weakref.WeakSet()

    @classmethod
    def add(cls, loop: asyncio.AbstractEventLoop) -> None:
        cls.made += 1
        cls.alive.add(loop)


class Marks:
    """A callback on each loop that is there already: a fixture may have made the loop that a test runs on."""

    def __init__(self) -> None:
        self.ran: list[int] = []
        self.handles: list[asyncio.Handle | None] = []
        for loop in list(LoopCount.alive):
            with contextlib.suppress(RuntimeError):  # closed
                self.handles.append(loop.call_soon_threadsafe(self.ran.append, 1))

    def take(self) -> int:
        """How many of these loops ran since."""
        for handle in self.handles:
            if handle is not None:  # the method was a test's own
                handle.cancel()
        return len(self.ran)


class _CandidateType(type):
    """`isinstance(loop, asyncio.SelectorEventLoop)` must stay true of the loops the redirected name makes."""

    candidate: type = object

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        """Who derives from the redirected name gets a class derived from the candidate."""
        if not any(isinstance(base, _CandidateType) for base in bases):
            return super().__new__(mcs, name, bases, namespace)
        real = tuple(mcs.candidate if isinstance(base, _CandidateType) else base for base in bases)
        derived: Any = type(mcs.candidate)(name, real, namespace)
        make = derived.__init__

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            make(self, *args, **kwargs)
            LoopCount.add(self)

        derived.__init__ = __init__
        return derived

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.candidate)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.candidate)


def _candidate_class(make: loops.LoopFactory) -> type:
    """A class whose call returns what `make` returns.

    Not a subclass of the loop: that would give it a `__dict__`, and hide that a loop without one breaks
    programs.
    """
    probe = make()
    _CandidateType.candidate = type(probe)
    probe.close()

    class SelectorEventLoop(metaclass=_CandidateType):
        def __new__(cls, selector: Any = None) -> Any:
            # tests that insist on a selector choose the stock loop's way to sleep, which no other loop has
            loop = make()
            LoopCount.add(loop)
            return loop

    return SelectorEventLoop


def install(name: str) -> None:
    """Redirect asyncio's own names to the loop called `name`; nothing happens for the stock loop."""
    if name == loops.STOCK:
        return
    candidate = _candidate_class(loops.factory(name))
    unix_events: Any = asyncio.unix_events
    # the default policy and not a policy of ours: suites call set_event_loop_policy(None) after every test
    policy = getattr(unix_events, "_DefaultEventLoopPolicy", None) or unix_events._UnixDefaultEventLoopPolicy
    policy._loop_factory = candidate
    namespace: Any = asyncio
    namespace.SelectorEventLoop = candidate
    if hasattr(asyncio, "EventLoop"):
        namespace.EventLoop = candidate
