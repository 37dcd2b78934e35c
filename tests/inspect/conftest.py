"""Loops that run in threads of their own, and a place for the inspector's socket."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from uringloop.inspect import observers, server


class Running:
    """A loop that runs in a thread until `stop`."""

    def __init__(self, loop: Any, name: str) -> None:
        self.loop = loop
        self._thread = threading.Thread(target=loop.run_forever, name=name)
        started = threading.Event()
        loop.call_soon(started.set)
        self._thread.start()
        started.wait()

    def call(self, function: Callable[[], Any]) -> Any:
        """In the loop's thread, as a callback; its result."""
        done = threading.Event()
        result: list[Any] = []

        def called() -> None:
            try:
                result.append(function())
            finally:
                done.set()

        self.loop.call_soon_threadsafe(called)
        done.wait()
        return result[0]

    def stop(self) -> None:
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


@pytest.fixture
def run_in_thread(new_loop: Callable[..., Any]) -> Iterator[Callable[..., Running]]:
    """Makes running loops."""
    made: list[Running] = []

    def run(name: str = "a loop's own") -> Running:
        made.append(Running(new_loop(), name))
        return made[-1]

    yield run
    for running in made:
        running.stop()


@pytest.fixture
def running(run_in_thread: Callable[..., Running]) -> Running:
    return run_in_thread()


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """XDG_RUNTIME_DIR: with a short name, as addresses of Unix sockets must have."""
    folder = Path(tempfile.mkdtemp(prefix="ul"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield folder
    if server._serving is not None:
        server._serving.close()
    shutil.rmtree(folder)
    assert observers._observers == []
