"""EventLoopPolicy and install(): uringloop as the default event loop of asyncio programs."""

from __future__ import annotations

import asyncio
import functools
import threading
from asyncio import events, unix_events
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

from uringloop.loop import EventLoop, new_event_loop
from uringloop.startup.sitecustomize import ImportWatch

# Python 3.14 deprecates policies, and renames the class that it still uses internally. Python 3.16 has none.
_StockPolicy: Any = getattr(unix_events, "_UnixDefaultEventLoopPolicy", None) or getattr(
    unix_events, "_DefaultEventLoopPolicy", None
)


# The names of loops in uvicorn's configuration that mean uringloop once it is installed.
uvicorn_names = {"auto"}


if TYPE_CHECKING or _StockPolicy is not None:

    class EventLoopPolicy(_StockPolicy):  # type: ignore[misc]
        """asyncio's default policy with uringloop's loops; for `asyncio.set_event_loop_policy`."""

        _loop_factory = EventLoop


def __getattr__(name: str) -> object:
    if name == "EventLoopPolicy":
        raise AttributeError(
            "this Python has no event loop policies, so uringloop has no EventLoopPolicy: use uringloop.run(main()),"
            " or asyncio.Runner(loop_factory=uringloop.new_event_loop), or uringloop.install()"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def install() -> None:
    """Make every `asyncio.run` and `asyncio.new_event_loop` of this process use uringloop. uvicorn, which does not ask
    asyncio, uses it as well, unless the program names another loop."""
    if _StockPolicy is None:
        _replace_new_event_loop()
    else:
        setter = getattr(events, "_set_event_loop_policy", None) or asyncio.set_event_loop_policy
        setter(EventLoopPolicy())
    _watch_uvicorn()


class _Asked(Exception):
    """This thread's Runner has asked asyncio for a loop."""


def _replace_new_event_loop() -> None:
    """Without policies: asyncio's functions that make a loop look this name up. It doesn't reach a program that has
    imported the function by name before."""
    before, here = events.new_event_loop, threading.get_ident()

    def asked() -> asyncio.AbstractEventLoop:
        if threading.get_ident() == here:
            raise _Asked
        return before()

    events.new_event_loop = asked
    runner = asyncio.Runner()
    try:
        runner.get_loop()
    except _Asked:
        asyncio.new_event_loop = events.new_event_loop = new_event_loop
        return
    except BaseException:
        events.new_event_loop = before
        raise
    events.new_event_loop = before
    with suppress(RuntimeError):  # another loop runs in this thread: the collector closes this one
        runner.close()
    raise RuntimeError(
        "install() has no effect on this Python, whose asyncio.Runner makes its loops in another way: use "
        "uringloop.run(main()), or asyncio.Runner(loop_factory=uringloop.new_event_loop)"
    )


def installed() -> bool:
    """Whether asyncio makes uringloop's loops."""
    if _StockPolicy is None:
        return events.new_event_loop is new_event_loop
    return isinstance(getattr(events, "_event_loop_policy", None), EventLoopPolicy)


@functools.cache  # once in a process
def _watch_uvicorn() -> None:
    ImportWatch({"uvicorn.config": change_uvicorn}).begin()


def change_uvicorn(module: ModuleType) -> None:
    """Make uvicorn's configurations name uringloop where they name a loop of `uvicorn_names`. uvicorn sends its
    configuration to its worker processes."""
    config: Any = module.Config
    make = config.__init__
    if make.__module__ == __name__:
        return  # it is changed already
    # uvicorn before 0.36 takes no other names than its own; "none" leaves the choice to asyncio's policy.
    ours = "uringloop:new_event_loop" if hasattr(config, "get_loop_factory") else "none"

    def __init__(self: Any, *arguments: Any, **options: Any) -> None:
        make(self, *arguments, **options)
        if self.loop in uvicorn_names and installed():
            self.loop = ours

    __init__.__wrapped__ = make  # type: ignore[attr-defined]  # for inspect.signature
    config.__init__ = __init__
