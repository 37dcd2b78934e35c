"""Runs the servers of docs/integrations.md as it says, and asks each which loop it answers from."""

import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
PAGE = PROJECT / "docs/integrations.md"
OURS = "uringloop.loop.EventLoop"


def documented(beginning: str) -> list[str]:
    """The one command of the page that begins so, as `python -m` would run it with this interpreter."""
    lines = re.findall(rf"^{re.escape(beginning)}.*$", PAGE.read_text(), re.MULTILINE)
    assert len(lines) == 1, lines
    program, *arguments = shlex.split(lines[0])
    if program == "python":
        return [sys.executable, *arguments]
    return [sys.executable, "-m", program, *arguments]


def answer_of(command: list[str], end: signal.Signals = signal.SIGTERM) -> str:
    """What the server says to one request; it prints where it listens, and must end well when told to."""
    path = os.pathsep.join([str(PROJECT / "examples"), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        command,
        cwd=PROJECT / "examples",
        env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = ""
        try:
            while True:
                line = process.stdout.readline()
                assert line, said
                said += line
                if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                    break
            with urllib.request.urlopen(f"http://127.0.0.1:{found[1]}/", timeout=30) as answer:
                text: str = answer.read().decode().strip()
            process.send_signal(end)
            rest, _ = process.communicate(timeout=60)
            assert process.returncode in (0, -end), said + rest
            assert "Traceback" not in said + rest, said + rest
            return text
        finally:
            process.kill()
