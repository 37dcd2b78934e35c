"""python-liburing is an extra, and io_uring may be refused: nothing here can run then."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from uringloop._core.probe import refusal


def pytest_ignore_collect(collection_path: Any) -> bool | None:
    return True if importlib.util.find_spec("liburing") is None or refusal() is not None else None


@pytest.fixture
def ring() -> Any:
    """A ring of the user's own, of 8 entries."""
    import liburing

    made = liburing.Ring()
    liburing.io_uring_queue_init(8, made)
    yield made
    if made.ring_fd > 0:
        liburing.io_uring_queue_exit(made)
