"""Owns the names of the loops that can be tested. Never imports one before it is asked for."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

LoopFactory = Callable[[], asyncio.AbstractEventLoop]

STOCK = "asyncio"

# Options are spelled out for our own loop: left to itself it falls back to epoll where io_uring is refused,
# and then a run on "uringloop" would prove nothing about the ring.
NAMED: dict[str, tuple[str, dict[str, Any]]] = {
    "uringloop": ("uringloop:new_event_loop", {"engine": "uring"}),
    "uringloop-epoll": ("uringloop:new_event_loop", {"engine": "epoll"}),
    "uringloop-auto": ("uringloop:new_event_loop", {}),
    STOCK: ("asyncio:SelectorEventLoop", {}),
    "uvloop": ("uvloop:new_event_loop", {}),
    "zuvloop": ("zuvloop:new_event_loop", {}),
    "rloop": ("rloop:new_event_loop", {}),
    "rsloop": ("rsloop:new_event_loop", {}),
}


def environment(name: str) -> dict[str, str]:
    """What the environment of a test process has to say, and of the programs that it starts."""
    target, options = NAMED.get(name, (name, {}))
    # programs and subclasses that pass no options are to get the same engine
    variables = {"URINGLOOP_ENGINE": options["engine"]} if "engine" in options else {}
    spec = importlib.util.find_spec(target.partition(":")[0])
    home = str(Path(spec.origin).parent.parent) if name != STOCK and spec and spec.origin else ""
    return {**variables, "COMPAT_LOOP": name, "COMPAT_LOOP_HOME": home}


def factory(name: str) -> LoopFactory:
    """The function that makes a new loop of this name; any `module:attribute` will do as a name."""
    target, options = NAMED.get(name, (name, {}))
    module_name, separator, attribute = target.partition(":")
    if not separator:
        raise SystemExit(f"no loop is called {name!r}: one of {', '.join(NAMED)}, or module:function")
    try:
        make: LoopFactory = getattr(importlib.import_module(module_name), attribute)
    except ImportError as error:
        raise SystemExit(f"the loop {name!r} cannot be imported: {error}") from error
    if not options:
        return make
    configured: Any = make
    return lambda: configured(**options)
