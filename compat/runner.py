"""Starts test processes, watches them, and starts again behind a test that crashed or hung its process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compat import loops
from compat.places import ROOT
from compat.suite import Suite

_POLL_SECONDS = 0.05
# an import, a collection or a fixture that takes longer than this hangs
_SILENT_SECONDS = 120.0
_STDERR_LINES = 40
# what is installed comes first, then the loop under test, and the tree that compat itself lives in last
_BOOT = (
    f"import os, sys; sys.path += [os.environ['COMPAT_LOOP_HOME'], {str(ROOT)!r}]; "
    "from compat.child import main; main()"
)


@dataclass
class Outcome:
    """What one test did on one loop."""

    status: str  # pass, fail, error, skip, crash, timeout
    message: str = ""
    seconds: float = 0.0
    loops: int = 0  # loops of the candidate that were made for it, or ran in it


@dataclass
class Results:
    """What all tests of a suite did on one loop."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    excluded: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Options:
    """How the test processes of one run are set up."""

    loop: str
    debug: bool = False
    tiny: bool = False
    pattern: str | None = None
    exclude: tuple[str, ...] = ()
    python: str = sys.executable
    variables: dict[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        variables = dict(os.environ)
        for name in ("PYTHONASYNCIODEBUG", "URINGLOOP_TINY", "URINGLOOP_ENGINE", "PYTHONPATH"):
            variables.pop(name, None)
        variables.update(loops.environment(self.loop))
        variables.update(self.variables)
        if self.debug:
            variables["PYTHONASYNCIODEBUG"] = "1"
        if self.tiny:
            variables["URINGLOOP_TINY"] = "1"
        return variables


class _Process:
    """One test process and the lines it has written so far."""

    def __init__(
        self, suite: str, module: str, tests: list[str] | None, options: Options, folder: Path
    ) -> None:
        self.results = folder / "results"
        self.results.touch()
        self.stderr = folder / "stderr"
        spec = folder / "spec.json"
        spec.write_text(
            json.dumps(
                {
                    "suite": suite,
                    "module": module,
                    "tests": tests,
                    "loop": options.loop,
                    "pattern": options.pattern,
                    "exclude": options.exclude,
                    "results": str(self.results),
                }
            ),
            encoding="utf-8",
        )
        work = folder / "work"
        work.mkdir()
        with open(self.stderr, "wb") as errors:
            # a session of its own: what the tests start can be ended with them
            self.popen = subprocess.Popen(
                [options.python, "-c", _BOOT, str(spec)],
                cwd=work,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env=options.environment(),
                start_new_session=True,
            )
        self.offset = 0
        self.rest = b""

    def events(self) -> list[dict[str, Any]]:
        with open(self.results, "rb") as file:
            file.seek(self.offset)
            data = file.read()
        self.offset += len(data)
        *lines, self.rest = (self.rest + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def kill(self) -> None:
        """SIGABRT first: faulthandler then writes where every thread hangs."""
        self.popen.send_signal(signal.SIGABRT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(3)
        self.sweep()
        self.popen.wait()

    def queued(self) -> float:
        """For how many seconds its first thread has been ready to run, and did not."""
        try:
            _, nanoseconds, _ = Path(f"/proc/{self.popen.pid}/schedstat").read_text().split()
        except (OSError, ValueError):
            return 0.0  # it has ended, or the kernel doesn't say
        return int(nanoseconds) / 1e9

    def sweep(self) -> None:
        """End whatever the tests left running in the process's session."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)

    def last_words(self) -> str:
        lines = self.stderr.read_text(errors="replace").splitlines()
        starts = [index for index, line in enumerate(lines) if line.startswith("Fatal Python error")]
        return "\n".join(lines[starts[-1] :][:_STDERR_LINES] if starts else lines[-_STDERR_LINES:])


class _ModuleRun:
    """All tests of one module on one loop, in as many processes as it takes."""

    def __init__(
        self,
        suite_name: str,
        suite: Suite,
        module: str,
        options: Options,
        progress: Callable[[str, Outcome], None],
    ) -> None:
        self.suite_name = suite_name
        self.suite = suite
        self.module = module
        self.options = options
        self.progress = progress
        self.results = Results()
        self.collected: list[str] | None = None
        self.fixture_message = ""

    def settle(self, test: str, outcome: Outcome) -> None:
        self.results.outcomes[test] = outcome
        self.progress(test, outcome)

    def remaining(self) -> list[str] | None:
        if self.collected is None:
            return None
        left = [test for test in self.collected if test not in self.results.outcomes]
        # one test a process, where the suite asks for it; the first process only collects
        return left[:1] if self.suite.isolated else left

    def run(self) -> Results:
        tests: list[str] | None = [] if self.suite.isolated else None
        while tests is None or tests or self.collected is None:
            if not self.attempt(tests):
                break
            tests = self.remaining()
        return self.results

    def attempt(self, tests: list[str] | None) -> bool:
        """One process. False when it got nowhere and another would not either."""
        with tempfile.TemporaryDirectory(prefix="compat-", ignore_cleanup_errors=True) as folder:
            process = _Process(self.suite_name, self.module, tests, self.options, Path(folder))
            before = len(self.results.outcomes)
            first = self.collected is None
            running, done, timed_out = self.watch(process)
            process.sweep()
            if done:
                self.explain_missing(tests)
                return True
            words = process.last_words()
        code = process.popen.returncode
        if running is not None:
            status = "timeout" if timed_out else "crash"
            head = (
                f"no end after {self.suite.test_seconds:.0f} s" if timed_out else f"process ended with {code}"
            )
            self.settle(running, Outcome(status, f"{head}\n{words}"))
        elif self.collected is None or (not first and len(self.results.outcomes) == before):
            self.settle(f"{self.module} (module)", Outcome("crash", f"process ended with {code}\n{words}"))
            return False
        return True

    def watch(self, process: _Process) -> tuple[str | None, bool, bool]:
        """Follow a process to its end: (test that was running, reached the end, was killed for silence)."""
        running: str | None = None
        done = False
        silent, looked, waited = 0.0, time.monotonic(), 0.0
        while True:
            exited = process.popen.poll() is not None
            # If this process was suspended, so was the test: that counts as a second. And while the test waited for a
            # processor, on a busy machine, it did not hang.
            now, queued = time.monotonic(), process.queued()
            silent += max(min(now - looked, 1.0) - max(queued - waited, 0.0), 0.0)
            looked, waited = now, queued
            for event in process.events():
                silent = 0.0
                running = self.take(event, running)
                done = done or event["event"] == "done"
            limit = _SILENT_SECONDS if running is None else self.suite.test_seconds
            if exited:
                return running, done, False
            if silent > limit:
                process.kill()
                return running, done, True
            time.sleep(_POLL_SECONDS)

    def take(self, event: dict[str, Any], running: str | None) -> str | None:
        """Book one line of the process; the name of the test that is running after it."""
        kind = event["event"]
        if kind == "start":
            return str(event["test"])
        if kind == "end":
            self.settle(
                event["test"], Outcome(event["status"], event["message"], event["seconds"], event["loops"])
            )
            return None
        if kind == "collected":
            if self.collected is None:
                self.collected = event["tests"]
            self.results.excluded.update(event["excluded"])
        elif kind == "fixture":
            self.fixture_message = event["message"]
        elif kind == "module":
            self.settle(f"{self.module} (module)", Outcome(event["status"], event["message"]))
        return running

    def explain_missing(self, tests: list[str] | None) -> None:
        """A process that reached its end without running a test had a class or module fixture fail."""
        asked = self.collected if tests is None else tests
        for test in asked or []:
            if test not in self.results.outcomes:
                status = "error" if "Traceback" in self.fixture_message else "skip"
                self.settle(test, Outcome(status, self.fixture_message or "never ran"))


def run_suite(
    suite_name: str,
    suite: Suite,
    modules: list[str],
    options: Options,
    jobs: int,
    progress: Callable[[str, Outcome], None],
) -> dict[str, Results]:
    """Modules of a suite on one loop, `jobs` processes at a time; results by module."""

    def one(module: str) -> Results:
        return _ModuleRun(suite_name, suite, module, options, progress).run()

    with ThreadPoolExecutor(jobs) as pool:
        return dict(zip(modules, pool.map(one, modules), strict=True))


def merged(parts: dict[str, Results]) -> Results:
    """The results of all modules in one."""
    total = Results()
    for part in parts.values():
        total.outcomes.update(part.outcomes)
        total.excluded.update(part.excluded)
    return total
