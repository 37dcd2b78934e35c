"""Runs an example as its reader would."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def command_of(name: str, *arguments: object) -> list[str]:
    return [sys.executable, "-W", "error", str(EXAMPLES / name), *map(str, arguments)]


def output_of(name: str, *arguments: object) -> str:
    """What it prints; it must end well, and be short."""
    run = subprocess.run(command_of(name, *arguments), capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout


@contextmanager
def running(name: str, *arguments: object, end: signal.Signals = signal.SIGINT) -> Iterator[IO[str]]:
    """Its output, line by line, while it runs; at the end it gets a signal, and must end well."""
    with subprocess.Popen(command_of(name, *arguments), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout
            process.send_signal(end)
            rest, _ = process.communicate(timeout=60)
            assert process.returncode == 0 and rest.startswith("stopped"), rest
        finally:
            process.kill()


def port_of(output: IO[str]) -> int:
    """From the line that a server prints once it listens."""
    line = output.readline()
    assert line.startswith("listening on "), line
    return int(line.split()[-1])
