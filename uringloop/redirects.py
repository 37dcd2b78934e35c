"""Redirects the loops that programs choose themselves to uringloop: uvloop's entry points, and uvicorn's own choice.
`uringloop run` redirects both, in its process and in those that this one starts."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from types import ModuleType
from typing import TypeVar

from uringloop import policy
from uringloop.loop import EventLoop, new_event_loop
from uringloop.startup import sitecustomize

T = TypeVar("T")

KEEP = "URINGLOOP_KEEP_UVLOOP"


def redirect(keep_uvloop: bool) -> None:
    """Make this process, and the Python processes that it starts, run on uringloop whatever loop they choose."""
    if keep_uvloop:
        os.environ[KEEP] = "1"
    folder = os.path.dirname(os.path.abspath(sitecustomize.__file__))
    folders = [given for given in os.environ.get("PYTHONPATH", "").split(os.pathsep) if given != folder]
    os.environ["PYTHONPATH"] = os.pathsep.join([folder, *filter(None, folders)])
    sitecustomize.watch()


def uvloop_kept() -> bool:
    return os.environ.get(KEEP, "") not in ("", "0")


_installed = False


def change_asyncio(_: ModuleType) -> None:
    global _installed
    if _installed:
        return  # the program may have set another policy since
    _installed = True
    takes_uvloop = uvloop_kept() and find_spec("uvloop") is not None
    policy.uvicorn_names = {"asyncio"} if takes_uvloop else {"asyncio", "auto"}
    policy.install()


def change_uvloop(module: ModuleType) -> None:
    """Put uringloop's loop behind every public name of uvloop that makes a loop."""
    if uvloop_kept():
        return
    changed: dict[str, object] = {
        "Loop": EventLoop,
        "install": policy.install,
        "new_event_loop": new_event_loop,
        "run": run,
    }
    if hasattr(policy, "EventLoopPolicy"):  # not from Python 3.16 on
        changed["EventLoopPolicy"] = policy.EventLoopPolicy
    vars(module).update(changed)
    print(
        "uringloop run: uvloop makes uringloop's loops here (--keep-uvloop leaves it alone)", file=sys.stderr
    )


def run(
    main: Awaitable[T],
    *,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = new_event_loop,
    debug: bool | None = None,
) -> T:
    """uvloop.run(), on uringloop's loop."""

    async def wait() -> T:
        return await main

    if asyncio.events._get_running_loop() is not None:
        raise RuntimeError("uvloop.run() cannot be called from a running event loop")
    with asyncio.Runner(debug=debug, loop_factory=loop_factory) as runner:
        return runner.run(wait())


def change_uvicorn(module: ModuleType) -> None:
    """For a process that imports uvicorn before asyncio, and so before install() could watch for uvicorn."""
    policy.change_uvicorn(module)
