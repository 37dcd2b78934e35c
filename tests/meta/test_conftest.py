"""What tests/conftest.py changes in pytest."""

import shutil
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"

FAILS = """
import ast, gc

class Parses:
    def __init__(self):
        self.cycle = self
    def __del__(self):
        Parses()  # for the next collection
        deep(20)

def deep(calls):
    return deep(calls - 1) if calls else ast.parse("1")

def test_fails():
    Parses()
    gc.set_threshold(50, 1, 1)
    assert False, "as it should"

def test_the_collector_runs_again():
    assert gc.isenabled()

def never_called():
"""
LONG = "\n".join(f"    a = [(b + {number}) * f(c, {number})]" for number in range(3000))


def test_a_failure_is_reported_if_the_collector_runs_destructors_that_parse(tmp_path: Path) -> None:
    """CPython before 3.11.8 raises SystemError if a destructor parses while pytest parses (gh-106905)."""
    shutil.copy(CONFTEST, tmp_path)
    (tmp_path / "test_fails.py").write_text(FAILS + LONG)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_fails.py"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert "1 failed, 1 passed" in ended.stdout and "as it should" in ended.stdout, ended.stdout
