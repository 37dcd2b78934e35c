"""A package's own test suite, run by pytest from its source archive against the installed package."""

from __future__ import annotations

import contextlib
import fnmatch
import gc
import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat import archives
from compat.recorder import MESSAGE_LIMIT, Recorder
from compat.suite import Suite

_INJECT = Path(__file__).resolve().parent.parent / "inject"
# nothing that the suite's own configuration may ask of plugins we don't install
_QUIET = ("-p", "no:cacheprovider", "-o", "addopts=", "-o", "faulthandler_timeout=0", "--import-mode=prepend")


@dataclass(frozen=True, kw_only=True)
class PytestSuite(Suite):
    """A process for each of its test files."""

    name: str
    # files that test no loop, or can't run outside of the project's own set-up
    leave_out: tuple[str, ...] = ()
    # tests of other loops, by pytest's -k
    select: str = ""
    files: str = "tests/**/test_*.py"
    # for pytest; {NAME} stands for an environment variable
    options: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    # the archive's copy of the package must not hide the installed one, which has its compiled parts
    hide: str | None = None

    def modules(self) -> list[str]:
        root = archives.fetch(self.name, self.version)
        found = sorted(str(path.relative_to(root)) for path in root.glob(self.files))
        return [file for file in found if not any(fnmatch.fnmatchcase(file, rule) for rule in self.leave_out)]

    def run(self, spec: dict[str, Any], recorder: Recorder) -> None:
        """In a test process: run one file by pytest."""
        import pytest

        root = archives.fetch(self.name, self.version)
        if self.hide and (root / self.hide).exists():
            with contextlib.suppress(FileNotFoundError):
                os.rename(root / self.hide, root / f"{self.hide}.hidden")
        os.chdir(root)
        os.environ.update(self.environment)
        os.environ["PYTHONPATH"] = str(_INJECT)
        sys.path.insert(0, str(root))
        select = ("-k", self.select) if self.select else ()
        options = [option.format_map(os.environ) for option in self.options]
        pytest.main([*_QUIET, *options, *select, spec["module"]], plugins=[_Plugin(spec, recorder)])


class _Plugin:
    """Books what pytest does in our own terms."""

    def __init__(self, spec: dict[str, Any], recorder: Recorder) -> None:
        self.spec = spec
        self.recorder = recorder
        self.outcome: tuple[str, str] = ("pass", "")

    def pytest_collection_finish(self, session: Any) -> None:
        """After the suite's own -k: choose what the specification asks for."""
        named = {item.nodeid: item for item in session.items}
        session.items[:] = [named[name] for name in self.recorder.choose(list(named), self.spec)]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.recorder.module("crash", report.longreprtext)
        elif report.skipped:
            self.recorder.module("skip", str(report.longrepr))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.outcome = ("pass", "")
        self.recorder.start(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            status = "fail" if report.when == "call" else "error"
            self.outcome = (status, report.longreprtext[-MESSAGE_LIMIT:])
        elif report.skipped and not hasattr(report, "wasxfail"):
            self.outcome = ("skip", str(report.longrepr))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.recorder.end(nodeid, *self.outcome)
        if self.outcome[0] != "pass":
            _drop_what_it_left()


def _drop_what_it_left() -> None:
    """A test that failed leaves its frames in a traceback, with sockets not closed. The warnings of those would
    be booked on the test that runs when the collector comes by.
    """
    for name in ("last_exc", "last_type", "last_value", "last_traceback"):
        if hasattr(sys, name):
            delattr(sys, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()
