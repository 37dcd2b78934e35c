"""The paths that `make counts` counts can be done, on whatever Python and build this is."""

import asyncio
from typing import Any

import pytest

from tools.counts import io_paths  # noqa: F401
from tools.counts.paths import BATCH, PATHS


@pytest.mark.engines("uring", "epoll")
@pytest.mark.parametrize("name", PATHS)
def test_each_path_runs(name: str, loop: Any) -> None:
    _, path = PATHS[name]
    asyncio.set_event_loop(loop)
    try:
        steps = path(loop)
        run = next(steps)
        for factor in (2, 4):
            run(factor * BATCH)
        assert next(steps, None) is None
    finally:
        asyncio.set_event_loop(None)
