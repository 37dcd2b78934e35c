"""Stands in for the package `uvloop` in its own test suite: the public names, over the loop under test.

Its test helpers (`uvloop._testbase`) come from uvloop's source archive; `uvloop.loop`, the compiled inside,
is missing on purpose.
"""

import asyncio
import os
import warnings
from typing import Any

__path__.append(os.path.join(os.environ["COMPAT_UVLOOP_SOURCE"], "uvloop"))


def new_event_loop() -> Any:
    # asyncio's own name: it has been redirected to the loop under test before this module is imported
    return asyncio.SelectorEventLoop()


_probe = new_event_loop()
Loop = type(_probe)
_probe.close()

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)

    class EventLoopPolicy(asyncio.DefaultEventLoopPolicy):
        _loop_factory = staticmethod(new_event_loop)


def run(main: Any, *, loop_factory: Any = new_event_loop, debug: bool | None = None) -> Any:
    with asyncio.Runner(loop_factory=loop_factory, debug=debug) as runner:
        return runner.run(main)


def install() -> None:
    asyncio.set_event_loop_policy(EventLoopPolicy())
