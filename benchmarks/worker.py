"""Worker: a child process that measures one candidate. The parent's half; `worker_child` is the other.

Owns the process and its pipes. A worker that crashes or misses its deadline is killed, and the next
sample starts a new one, so that a broken loop can never stop the run.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from typing import IO, Any

from benchmarks.candidate import Candidate
from benchmarks.row import Failed, Row, Skipped

START_TIMEOUT = 30.0


class Worker:
    """One child process for one candidate; answers one JSON line per request line."""

    def __init__(self, candidate: Candidate) -> None:
        self.candidate = candidate
        self._process: subprocess.Popen[bytes] | None = None
        self._pending = b""
        self._complaints: IO[bytes] | None = None

    def sample(self, row: Row, seconds: float) -> dict[str, float]:
        """One sample of a row, as a value per metric. Raises Failed or Skipped."""
        request = {"work": row.work, "arguments": row.arguments, "seconds": seconds}
        answer = self.ask(request, row.timeout + seconds)
        if "skipped" in answer:
            raise Skipped(answer["skipped"])
        if "error" in answer:
            raise Failed(answer["error"])
        return {name: float(value) for name, value in answer["values"].items()}

    def ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise Failed(self._died()) from None
        answer: dict[str, Any] = json.loads(self._read_line(timeout))
        return answer

    def close(self) -> None:
        """End the process; the next request begins another."""
        process, self._process = self._process, None
        self._pending = b""
        if process is None:
            return
        if self._complaints is not None:
            self._complaints.close()
            self._complaints = None
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            # a file, not a pipe: a loop that complains at length must not block on its complaints
            self._complaints = tempfile.TemporaryFile()  # noqa: SIM115  (`close` closes it)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.worker_child", self.candidate.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                env=child_environment(),
            )
            ready = json.loads(self._read_line(START_TIMEOUT))
            if "error" in ready:
                self.close()
                raise Failed(ready["error"])
        return self._process

    def _read_line(self, timeout: float) -> bytes:
        assert self._process is not None and self._process.stdout is not None
        fd = self._process.stdout.fileno()
        deadline = time.monotonic() + timeout
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                last = self._last_words()
                self.close()
                raise Failed(f"hung: no answer in {timeout:.0f} s" + (f", after: {last}" if last else ""))
            chunk = os.read(fd, 65536)
            if not chunk:
                raise Failed(self._died())
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _died(self) -> str:
        process = self._process
        assert process is not None
        try:
            code = process.wait(5)
        except subprocess.TimeoutExpired:
            code = 0
        last = self._last_words()
        self.close()
        ended = f"crashed: killed by signal {-code}" if code < 0 else f"crashed: exit status {code}"
        return f"{ended}: {last}" if last else ended

    def _last_words(self) -> str:
        """The last line it wrote to standard error."""
        if self._complaints is None:
            return ""
        self._complaints.seek(0)
        words = self._complaints.read().decode(errors="replace").strip().splitlines()
        return words[-1].strip()[:200] if words else ""


def child_environment() -> dict[str, str]:
    """The environment of every child: this package importable, nothing in debug mode, and modules from their bytecode:
    free-threaded 3.13 makes immortal only the constants of those it has read, and two threads that count references to
    the others' run at half the speed.
    """
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONASYNCIODEBUG", "PYTHONDEVMODE", "PYTHONDONTWRITEBYTECODE")
    }
    path = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = root + (os.pathsep + path if path else "")
    return environment
