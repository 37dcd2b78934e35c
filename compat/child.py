"""Runs the tests of one module in this process and appends a line of JSON for each thing that happens.

The parent reads that file while we run, so a crash or a hang costs one test and not the ones before it.
"""

from __future__ import annotations

import faulthandler
import fnmatch
import importlib
import json
import os
import sys
import time
import traceback
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from compat.install import LoopCount, install

_MESSAGE_LIMIT = 6000


def flatten(suite: Any) -> Iterator[unittest.TestCase]:
    """Every test case of a suite, in order."""
    if isinstance(suite, unittest.TestSuite):
        for part in suite:
            yield from flatten(part)
    else:
        yield suite


class Recorder(unittest.TestResult):
    """A TestResult that writes each outcome down at once."""

    def __init__(self, out: TextIO, prefix: str) -> None:
        super().__init__()
        self.out = out
        self.prefix = prefix
        self.outcome: tuple[str, str] | None = None
        self.started_at = 0.0
        self.loops_before = 0

    def write(self, **event: Any) -> None:
        self.out.write(json.dumps(event) + "\n")
        self.out.flush()

    def name(self, test: Any) -> str:
        return str(test.id()).removeprefix(self.prefix)

    def startTest(self, test: Any) -> None:
        super().startTest(test)
        self.outcome = None
        self.started_at = time.perf_counter()
        self.write(event="start", test=self.name(test))

    def stopTest(self, test: Any) -> None:
        super().stopTest(test)
        status, message = self.outcome or ("error", "the test ended without an outcome")
        self.write(
            event="end",
            test=self.name(test),
            status=status,
            message=message[-_MESSAGE_LIMIT:],
            seconds=round(time.perf_counter() - self.started_at, 3),
            loops=LoopCount.made - self.loops_before,
        )
        self.loops_before = LoopCount.made

    def _settle(self, test: Any, status: str, message: str) -> None:
        if self.outcome is None or self.outcome[0] in ("pass", "skip"):
            self.outcome = (status, message)
        if not isinstance(test, unittest.TestCase):
            # a class or module fixture failed: unittest hands in a stand-in, and runs none of its tests
            self.write(
                event="fixture", test=self.name(test), status=status, message=message[-_MESSAGE_LIMIT:]
            )

    def addSuccess(self, test: Any) -> None:
        if self.outcome is None:
            self.outcome = ("pass", "")

    def addFailure(self, test: Any, err: Any) -> None:
        self._settle(test, "fail", self._exc_info_to_string(err, test))

    def addError(self, test: Any, err: Any) -> None:
        self._settle(test, "error", self._exc_info_to_string(err, test))

    def addSkip(self, test: Any, reason: str) -> None:
        self._settle(test, "skip", reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self.outcome = ("pass", "")

    def addUnexpectedSuccess(self, test: Any) -> None:
        self._settle(test, "fail", "marked expectedFailure by its suite, but passed")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            status = "fail" if issubclass(err[0], test.failureException) else "error"
            self._settle(test, status, f"{subtest}\n{self._exc_info_to_string(err, test)}")

    def _exc_info_to_string(self, err: Any, test: Any) -> str:
        return "".join(traceback.format_exception(*err))


def run(spec: dict[str, Any]) -> None:
    """Load, choose and run what the specification asks for; the last line written is `done`."""
    with open(spec["results"], "a", encoding="utf-8") as out:
        install(spec["loop"])
        suite_room = importlib.import_module(f"compat.suites.{spec['suite']}")
        recorder = Recorder(out, suite_room.ID_PREFIX)
        if any(fnmatch.fnmatchcase(f"{spec['module']} (module)", pattern) for pattern in spec["exclude"]):
            recorder.write(event="collected", tests=[], excluded=[f"{spec['module']} (module)"])
            recorder.write(event="done")
            return
        try:
            cases = list(flatten(suite_room.load(spec["module"], spec["loop"])))
        except unittest.SkipTest as skipped:
            recorder.write(event="module", status="skip", message=str(skipped))
            cases = []
        pattern = f"*{spec['pattern'] or ''}*"
        named = {
            recorder.name(case): case for case in cases if fnmatch.fnmatchcase(recorder.name(case), pattern)
        }
        excluded = [
            name for name in named if any(fnmatch.fnmatchcase(name, rule) for rule in spec["exclude"])
        ]
        runnable = [name for name in named if name not in excluded]
        recorder.write(event="collected", tests=runnable, excluded=excluded)
        wanted = runnable if spec["tests"] is None else spec["tests"]
        recorder.loops_before = LoopCount.made
        unittest.TestSuite(named[name] for name in wanted).run(recorder)
        recorder.write(event="done")


def main() -> None:
    faulthandler.enable()
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        run(spec)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(70)
    # threads that a test left behind must not keep the process: every outcome is already on disk
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
