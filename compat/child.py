"""Runs the tests of one module in this process.

Everything is written down as it happens, so a crash or a hang costs one test and not the ones before it.
"""

from __future__ import annotations

import faulthandler
import fnmatch
import json
import os
import sys
import traceback
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compat.catalogue import SUITES
from compat.install import install
from compat.recorder import Recorder
from compat.suites.pytest import PytestSuite


def flatten(suite: Any) -> Iterator[unittest.TestCase]:
    """Every test case of a suite, in order."""
    if isinstance(suite, unittest.TestSuite):
        for part in suite:
            yield from flatten(part)
    else:
        yield suite


class _Result(unittest.TestResult):
    """Books what unittest does in our own terms."""

    def __init__(self, recorder: Recorder, prefix: str) -> None:
        super().__init__()
        self.recorder = recorder
        self.prefix = prefix
        self.outcome: tuple[str, str] | None = None

    def name(self, test: Any) -> str:
        return str(test.id()).removeprefix(self.prefix)

    def startTest(self, test: Any) -> None:
        super().startTest(test)
        self.outcome = None
        self.recorder.start(self.name(test))

    def stopTest(self, test: Any) -> None:
        super().stopTest(test)
        self.recorder.end(self.name(test), *(self.outcome or ("error", "the test ended without an outcome")))

    def _settle(self, test: Any, status: str, message: str) -> None:
        if self.outcome is None or self.outcome[0] in ("pass", "skip"):
            self.outcome = (status, message)
        if not isinstance(test, unittest.TestCase):
            # a class or module fixture failed: unittest hands in a stand-in, and runs none of its tests
            self.recorder.fixture(status, message)

    def addSuccess(self, test: Any) -> None:
        if self.outcome is None:
            self.outcome = ("pass", "")

    def addFailure(self, test: Any, err: Any) -> None:
        self._settle(test, "fail", _text(err))

    def addError(self, test: Any, err: Any) -> None:
        self._settle(test, "error", _text(err))

    def addSkip(self, test: Any, reason: str) -> None:
        self._settle(test, "skip", reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self.outcome = ("pass", "")

    def addUnexpectedSuccess(self, test: Any) -> None:
        self._settle(test, "fail", "marked expectedFailure by its suite, but passed")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            status = "fail" if issubclass(err[0], test.failureException) else "error"
            self._settle(test, status, f"{subtest}\n{_text(err)}")


def _text(err: Any) -> str:
    return "".join(traceback.format_exception(*err))


def _run_unittest(suite: Any, spec: dict[str, Any], recorder: Recorder) -> None:
    try:
        cases = list(flatten(suite.load(spec["module"], spec["loop"])))
    except unittest.SkipTest as skipped:
        recorder.module("skip", str(skipped))
        cases = []
    result = _Result(recorder, suite.id_prefix)
    named = {result.name(case): case for case in cases}
    unittest.TestSuite(named[name] for name in recorder.choose(list(named), spec)).run(result)


def run(spec: dict[str, Any]) -> None:
    """Load, choose and run what the specification asks for; the last line written is `done`."""
    suite = SUITES[spec["suite"]]
    module_name = f"{spec['module']} (module)"
    with open(spec["results"], "a", encoding="utf-8") as out:
        install(spec["loop"])
        recorder = Recorder(out, module_name)
        if any(fnmatch.fnmatchcase(module_name, rule) for rule in spec["exclude"]):
            recorder.write(event="collected", tests=[], excluded=[module_name])
        elif isinstance(suite, PytestSuite):
            suite.run(spec, recorder)
        else:
            _run_unittest(suite, spec, recorder)
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
