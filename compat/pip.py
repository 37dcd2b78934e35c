"""Runs pip, with whatever index it is set up for."""

from __future__ import annotations

import subprocess
from pathlib import Path


def pip(interpreter: Path | str, *arguments: str) -> None:
    """Run pip in the environment of an interpreter, silently unless it fails."""
    command = [str(interpreter), "-m", "pip", *arguments, "--quiet"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise SystemExit(f"pip {' '.join(arguments)} failed:\n{done.stdout}")
