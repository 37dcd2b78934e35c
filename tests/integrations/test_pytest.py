"""Our plugin, and pytest-asyncio's hook: what a test suite that uses them runs on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integrations.servers import PROJECT

ON_OUR_LOOP = """
import asyncio, unittest

def ours():
    return type(asyncio.get_running_loop()).__module__ == "uringloop.loop"
"""
WITH_PYTEST_ASYNCIO = "import pytest\n@pytest.mark.asyncio\nasync def test_it():\n    assert ours()\n"
WITH_ANYIO = (
    "import pytest\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    "@pytest.mark.anyio\nasync def test_it(anyio_backend):\n    assert ours()\n"
)
WITH_UNITTEST = (
    "class TestIt(unittest.IsolatedAsyncioTestCase):\n    async def test_it(self):\n        assert ours()\n"
)


def run_pytest(folder: Path, text: str, *options: str) -> str:
    """pytest in a process of its own, on one test file of this text."""
    (folder / "test_it.py").write_text(ON_OUR_LOOP + text)
    quiet = ("-p", "no:cacheprovider", "-o", "asyncio_default_fixture_loop_scope=function")
    command = [sys.executable, "-m", "pytest", *quiet, "-rA", *options, str(folder)]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=dict(os.environ))
    assert "INTERNALERROR" not in run.stdout, run.stdout
    return run.stdout + run.stderr


PLUGIN = ("-p", "uringloop.pytest_plugin")


@pytest.mark.parametrize("text", [WITH_PYTEST_ASYNCIO, WITH_UNITTEST], ids=["pytest-asyncio", "unittest"])
def test_the_option_puts_tests_on_our_loop(tmp_path: Path, text: str) -> None:
    said = run_pytest(tmp_path, text, *PLUGIN, "--uringloop")
    assert "1 passed" in said and "asyncio tests: on uringloop" in said


def test_the_option_puts_anyio_tests_on_our_loop(tmp_path: Path) -> None:
    pytest.importorskip("anyio", reason="one of `make integrations`")
    assert "1 passed" in run_pytest(tmp_path, WITH_ANYIO, *PLUGIN, "--uringloop")


@pytest.mark.parametrize("text", [WITH_PYTEST_ASYNCIO, WITH_UNITTEST], ids=["pytest-asyncio", "unittest"])
def test_without_the_option_nothing_changes(tmp_path: Path, text: str) -> None:
    said = run_pytest(tmp_path, text, *PLUGIN)
    assert "1 failed" in said and "asyncio tests" not in said


def test_the_hook_runs_each_test_on_both_loops(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((PROJECT / "examples/conftest_factories.py").read_text())
    said = run_pytest(tmp_path, WITH_PYTEST_ASYNCIO)
    assert "PASSED test_it.py::test_it[uringloop]" in said
    assert "FAILED test_it.py::test_it[asyncio]" in said
