"""Writes down what a test process does, a line of JSON at once for each thing that happens."""

from __future__ import annotations

import fnmatch
import json
import time
from typing import Any, TextIO

from compat.install import LoopCount, Marks

MESSAGE_LIMIT = 6000


class Recorder:
    """The lines that the parent reads."""

    def __init__(self, out: TextIO, module_name: str) -> None:
        self.out = out
        self.module_name = module_name
        self.started_at = 0.0
        self.loops_before = LoopCount.made
        self.marks = Marks()

    def write(self, **event: Any) -> None:
        self.out.write(json.dumps(event) + "\n")
        self.out.flush()

    def choose(self, names: list[str], spec: dict[str, Any]) -> list[str]:
        """Which of the tests found are to run; says so to the parent too."""
        named = [name for name in names if fnmatch.fnmatchcase(name, f"*{spec['pattern'] or ''}*")]
        rules = spec["exclude"]
        excluded = {name for name in named if any(fnmatch.fnmatchcase(name, rule) for rule in rules)}
        runnable = [name for name in named if name not in excluded]
        self.write(event="collected", tests=runnable, excluded=sorted(excluded))
        if spec["tests"] is None:
            return runnable
        return [name for name in runnable if name in set(spec["tests"])]

    def start(self, test: str) -> None:
        self.started_at = time.perf_counter()
        self.marks = Marks()
        self.write(event="start", test=test)

    def end(self, test: str, status: str, message: str) -> None:
        self.write(
            event="end",
            test=test,
            status=status,
            message=message[-MESSAGE_LIMIT:],
            seconds=round(time.perf_counter() - self.started_at, 3),
            loops=LoopCount.made - self.loops_before + self.marks.take(),
        )
        self.loops_before = LoopCount.made

    def module(self, status: str, message: str) -> None:
        """Something happened to all of the module's tests."""
        self.write(event="module", status=status, message=message[-MESSAGE_LIMIT:])

    def fixture(self, status: str, message: str) -> None:
        """A fixture of several tests failed, and they did not run."""
        self.write(event="fixture", status=status, message=message[-MESSAGE_LIMIT:])
