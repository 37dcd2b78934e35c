"""pytest-asyncio's hook, used by our own suite: the tests of this folder are coroutines, run on each engine and on
asyncio's own loop."""

import asyncio
from collections.abc import Callable
from functools import partial

import uringloop
from tests.conftest import ENGINES, STOCK


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    ours = {name: partial(uringloop.new_event_loop, engine=name) for name in ENGINES if name != STOCK}
    return {**ours, STOCK: asyncio.new_event_loop}
