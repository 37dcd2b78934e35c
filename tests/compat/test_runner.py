"""When the runner of other projects' tests says that a test hangs."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from compat.runner import Options, _ModuleRun


class Process:
    """Runs one test: without an end, or with no processor until it ends."""

    def __init__(self, gets_a_processor: bool) -> None:
        self.popen = self
        self.gets_a_processor = gets_a_processor
        self.started = time.monotonic()
        self.pending = [{"event": "start", "test": "a test"}]

    def poll(self) -> int | None:
        return 0 if self.queued() > 0.5 else None

    def queued(self) -> float:
        return 0.0 if self.gets_a_processor else time.monotonic() - self.started

    def events(self) -> list[dict[str, Any]]:
        pending, self.pending = self.pending, []
        return pending

    def kill(self) -> None:
        pass


@pytest.mark.parametrize("gets_a_processor", [True, False])
def test_a_test_that_waits_for_a_processor_does_not_hang(gets_a_processor: bool) -> None:
    suite: Any = SimpleNamespace(test_seconds=0.25)
    run = _ModuleRun("suite", suite, "module", Options("asyncio"), lambda *outcome: None)
    process: Any = Process(gets_a_processor)
    running, done, timed_out = run.watch(process)
    assert (running, done) == ("a test", False)
    assert timed_out is gets_a_processor
