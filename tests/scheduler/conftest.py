"""A scheduler of three contexts."""

from __future__ import annotations

from typing import Any

import pytest

from uringloop.scheduler import Scheduler


@pytest.fixture
def scheduler(engine: str) -> Any:
    with Scheduler(3, name="test") as running:
        yield running
