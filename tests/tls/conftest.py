from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def run(loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
    return lambda main: loop.run_until_complete(asyncio.wait_for(main, 30))


@pytest.fixture(params=["client", "server"])
def side(request: pytest.FixtureRequest) -> str:
    """Which end is under test."""
    name: str = request.param
    return name


@pytest.fixture
def reports(loop: Any) -> list[dict[str, Any]]:
    """What the loop's exception handler is told."""
    found: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: found.append(context))
    return found
