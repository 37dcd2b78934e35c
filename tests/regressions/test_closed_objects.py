"""add_reader and its family by object: what is known of one after it was closed."""

from __future__ import annotations

import socket
from typing import Any

import pytest

pytestmark = pytest.mark.contract


@pytest.mark.parametrize("write", [False, True])
def test_a_reader_or_writer_can_be_removed_by_its_closed_socket(loop: Any, write: bool) -> None:
    left, right = socket.socketpair()
    right.close()
    (loop.add_writer if write else loop.add_reader)(left, print)
    left.close()
    assert (loop.remove_writer if write else loop.remove_reader)(left) is True
    for method in (loop.remove_reader, loop.remove_writer):
        with pytest.raises(ValueError, match="Invalid file descriptor: -1"):
            method(left)
