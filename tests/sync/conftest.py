"""Several loops in threads of their own, for what works across them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import uringloop


def foreign_loops() -> list[Callable[[], asyncio.AbstractEventLoop]]:
    """Factories of loops that are not ours."""
    found: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop]
    try:
        import uvloop
    except ImportError:
        return found
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.sleep(0))  # opens a pipe that the process keeps: no test's leak
    return [*found, uvloop.new_event_loop]


FOREIGN = foreign_loops()


class Threads:
    """Runs things in threads, and raises what they raised."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self.errors: list[BaseException] = []

    def plain(self, function: Callable[..., object], *args: Any) -> None:
        def body() -> None:
            try:
                function(*args)
            except BaseException as error:
                self.errors.append(error)

        self.threads.append(threading.Thread(target=body, daemon=True))
        self.threads[-1].start()

    def loop(
        self,
        function: Callable[..., Awaitable[object]],
        *args: Any,
        factory: Callable[[], asyncio.AbstractEventLoop] = uringloop.new_event_loop,
    ) -> None:
        async def main() -> None:
            await function(*args)

        def body() -> None:
            with asyncio.Runner(loop_factory=factory) as runner:
                runner.run(main())

        self.plain(body)

    def join(self, timeout: float = 30) -> None:
        for thread in self.threads:
            thread.join(timeout)
            assert not thread.is_alive() or self.errors, f"{thread} hangs"
        self.threads.clear()
        if self.errors:
            raise self.errors[0]


@pytest.fixture
def threads(engine: str) -> Any:
    made = Threads()
    yield made
    made.join()


@pytest.fixture
def factories() -> list[Callable[[], asyncio.AbstractEventLoop]]:
    """Four loops: two of ours, and others."""
    return ([uringloop.new_event_loop] * 2 + FOREIGN * 2)[:4]
