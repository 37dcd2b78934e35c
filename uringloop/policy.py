"""EventLoopPolicy and install(): uringloop as the default event loop of asyncio programs."""

from __future__ import annotations

import asyncio
import functools
from asyncio import events, unix_events
from types import ModuleType
from typing import Any

from uringloop.loop import EventLoop
from uringloop.startup.sitecustomize import ImportWatch

# Python 3.14 deprecates policies, and renames the class that it still uses internally.
_StockPolicy: Any = getattr(unix_events, "_UnixDefaultEventLoopPolicy", None) or getattr(
    unix_events, "_DefaultEventLoopPolicy", None
)


# The names of loops in uvicorn's configuration that mean uringloop once it is installed.
uvicorn_names = {"auto"}


class EventLoopPolicy(_StockPolicy):  # type: ignore[misc]
    """asyncio's default policy with uringloop's loops; for `asyncio.set_event_loop_policy`."""

    _loop_factory = EventLoop


def install() -> None:
    """Make every `asyncio.run` and `asyncio.new_event_loop` of this process use uringloop. uvicorn, which does not ask
    asyncio, uses it as well, unless the program names another loop."""
    setter = getattr(events, "_set_event_loop_policy", None) or asyncio.set_event_loop_policy
    setter(EventLoopPolicy())
    _watch_uvicorn()


def installed() -> bool:
    """Whether asyncio's policy is uringloop's."""
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
