"""python-liburing is an extra, its wheel may not suit this processor, and io_uring may be refused: nothing here can
run then."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from uringloop._core.kernel.probe import refusal


def can_be_imported() -> bool:
    try:
        importlib.import_module("uringloop.ops")
    except ImportError:
        return False
    return True


def pytest_ignore_collect(collection_path: Any) -> bool | None:
    return None if can_be_imported() and refusal() is None else True


@pytest.fixture
def ring() -> Any:
    """A ring of the user's own, of 8 entries."""
    import liburing

    made = liburing.Ring()
    liburing.io_uring_queue_init(8, made)
    yield made
    if made.ring_fd > 0:
        liburing.io_uring_queue_exit(made)
