"""For a conftest.py: pytest-asyncio runs each test on asyncio's loop and on uringloop's."""

import asyncio
from collections.abc import Callable

import uringloop


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"asyncio": asyncio.new_event_loop, "uringloop": uringloop.new_event_loop}
