"""run(): asyncio.run on a uringloop loop."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Coroutine
from typing import Any, TypeVar

from uringloop.loop import new_event_loop

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T], *, debug: bool | None = None, **loop_options: Any) -> T:
    """Run the coroutine in a new event loop, as asyncio.run does. `loop_options` go to new_event_loop."""
    if asyncio.events._get_running_loop() is not None:
        # asyncio.Runner checks this too; checking it here first makes the message name this function.
        raise RuntimeError("uringloop.run() cannot be called from a running event loop")
    with asyncio.Runner(
        debug=debug, loop_factory=functools.partial(new_event_loop, **loop_options)
    ) as runner:
        return runner.run(main)
