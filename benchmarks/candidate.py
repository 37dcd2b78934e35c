"""Candidate: one event loop (or bare C program) that takes part.

Knows how to make it, never how to measure it.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
from dataclasses import dataclass, field
from typing import Any

CONTROL = "asyncio"
OURS = "uringloop"
EPOLL_ENGINE = "uringloop-epoll"  # the same loop where io_uring is refused, as in most containers


@dataclass(frozen=True)
class Candidate:
    """One competitor. `options` go to its `new_event_loop`; `optional` ones run only when a row or the
    user names them.
    """

    name: str
    module: str
    options: dict[str, Any] = field(default_factory=dict)
    optional: bool = False
    transports: str = ""  # a package that replaces the loop's transports by its own
    native: bool = False  # a bare C program: only rows with a server know how to run it

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        module = importlib.import_module(self.module)
        loop: asyncio.AbstractEventLoop = module.new_event_loop(**self.options)
        if self.transports:
            loop = importlib.import_module(self.transports).patch_loop(loop)
        return loop

    def version(self) -> str:
        if self.native:
            return "this repository"
        try:
            return importlib.metadata.version(self.module)
        except importlib.metadata.PackageNotFoundError:
            return "standard library" if self.module == CONTROL else "from its source folder"


CANDIDATES: tuple[Candidate, ...] = (
    Candidate(CONTROL, "asyncio"),
    Candidate("uvloop", "uvloop"),
    Candidate("rloop", "rloop"),
    Candidate("rsloop", "rsloop"),
    Candidate("zuvloop", "zuvloop"),
    Candidate(OURS, "uringloop"),
    Candidate(EPOLL_ENGINE, "uringloop", {"engine": "epoll"}, optional=True),
    Candidate("uringloop-busy", "uringloop", {"busy_poll": 20e-6}, optional=True),
    Candidate("uvloop-aiofastnet", "uvloop", transports="aiofastnet", optional=True),
    Candidate("zuvloop-aiofastnet", "zuvloop", transports="aiofastnet", optional=True),
    Candidate("uringloop-aiofastnet", "uringloop", transports="aiofastnet", optional=True),
    Candidate("c-epoll", "", native=True),
    Candidate("c-uring", "", native=True),
    Candidate("c-uring-busy", "", native=True, optional=True),
    Candidate("c-epoll-in-ring", "", native=True, optional=True),
)

AIOFASTNET = tuple(candidate.name for candidate in CANDIDATES if candidate.transports)


def candidate_named(name: str) -> Candidate:
    for candidate in CANDIDATES:
        if candidate.name == name:
            return candidate
    raise KeyError(f"no candidate named {name!r}; there are: {', '.join(c.name for c in CANDIDATES)}")
