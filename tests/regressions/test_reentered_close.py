"""loop.close() drops what the loop was to call, and a destructor of that may call close() again, or use the loop."""

from __future__ import annotations

import asyncio
import gc
import socket
import weakref
from collections.abc import Callable
from typing import Any

import pytest


class Closes:
    """A callback whose destructor closes its loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop

    def __call__(self, *_: object) -> None:
        pass

    def __del__(self) -> None:
        self.loop.close()


@pytest.mark.contract
@pytest.mark.parametrize(
    "schedule", ["call_soon", "call_soon_threadsafe", "call_later", "add_signal_handler"]
)
def test_a_destructor_closes_the_loop_that_is_being_closed(
    new_loop: Callable[..., Any], schedule: str
) -> None:
    loop = new_loop()
    before = {"call_later": (100,), "add_signal_handler": (10,)}.get(schedule, ())
    getattr(loop, schedule)(*before, Closes(loop))
    loop.close()
    assert loop.is_closed()
    loop.close()


@pytest.mark.contract
def test_a_readers_destructor_closes_the_loop_that_is_being_closed(new_loop: Callable[..., Any]) -> None:
    loop = new_loop()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        kept = Closes(loop)
        dropped = weakref.ref(kept)
        loop.add_reader(ours, kept)
        loop.add_writer(theirs, Closes(loop))
        del kept
        loop.close()
        assert loop.is_closed()
        gc.collect()
        assert dropped() is None


def test_a_destructor_adds_no_reader_to_a_loop_that_is_being_closed(new_loop: Callable[..., Any]) -> None:
    loop = new_loop()
    ours, theirs = socket.socketpair()
    refused = []

    class Adds:
        def __call__(self) -> None:
            pass

        def __del__(self) -> None:
            try:
                loop.add_reader(theirs, print)
            except RuntimeError as error:
                refused.append(str(error))

    with ours, theirs:
        loop.add_reader(ours, Adds())
        loop.close()
        assert refused == ["Event loop is closed"]
        assert not list(loop._readers.operations())


def test_an_interrupted_close_drops_the_readers_when_it_is_called_again(
    new_loop: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = new_loop()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        loop.add_reader(ours, print)
        clear = loop._readers.clear

        def interrupted() -> None:
            monkeypatch.setattr(loop._readers, "clear", clear)
            raise KeyboardInterrupt

        monkeypatch.setattr(loop._readers, "clear", interrupted)
        with pytest.raises(KeyboardInterrupt):
            loop.close()
        loop.close()
        assert loop.is_closed()
        assert not list(loop._readers.operations())
