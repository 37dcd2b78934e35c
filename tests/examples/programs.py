"""Runs an example as its reader would."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def output_of(name: str, *arguments: object) -> str:
    """What it prints; it must end well, and be short."""
    program = EXAMPLES / name
    assert len(program.read_text().splitlines()) <= 60, "an example is one idea"
    command = [sys.executable, "-W", "error", str(program), *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout
