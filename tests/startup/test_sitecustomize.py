"""What a Python process under `uringloop run` does at its start."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from uringloop.startup import sitecustomize

FOLDER = os.path.dirname(os.path.abspath(sitecustomize.__file__))
LOOP = "import asyncio; loop = asyncio.new_event_loop(); print(type(loop).__module__); loop.close()"


def started(code: str, *folders: Path) -> tuple[str, str]:
    """What a Python prints that starts with the startup folder, and then `folders`, in PYTHONPATH."""
    path = os.pathsep.join([FOLDER, *map(str, folders), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout, ended.stderr


def test_asyncio_makes_our_loops(engine: str) -> None:
    assert started(LOOP) == ("uringloop.loop\n", "")


def test_a_process_that_imports_uringloop_first_gets_our_loops_too(engine: str) -> None:
    assert started(f"import uringloop; {LOOP}") == ("uringloop.loop\n", "")


@pytest.mark.skipif(not hasattr(asyncio, "AbstractEventLoopPolicy"), reason="policies left Python with 3.16")
def test_a_policy_that_the_program_sets_stays(engine: str) -> None:
    code = (
        "import warnings; warnings.simplefilter('ignore'); import asyncio; asyncio.set_event_loop_policy(None);"
        f"import uringloop; {LOOP}"
    )
    out, error = started(code)
    assert (out.startswith("asyncio."), error) == (True, "")


def test_a_process_without_asyncio_imports_nothing_of_ours() -> None:
    code = f"import sys; print('uringloop' in sys.modules, 'asyncio' in sys.modules, {FOLDER!r} in sys.path)"
    assert started(code) == ("False False False\n", "")


def test_the_sitecustomize_that_it_hides_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.seen = __file__")
    code = "import sys, sitecustomize; print(sys.seen == sitecustomize.__file__)"
    assert started(f"{code}; {LOOP}", tmp_path) == ("True\nuringloop.loop\n", "")


def test_an_error_of_the_sitecustomize_that_it_hides_is_reported(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("1 / 0")
    out, error = started(LOOP, tmp_path)
    assert out == "uringloop.loop\n"
    assert "ZeroDivisionError" in error


def test_a_python_without_uringloop_says_so_and_stays_on_asyncio(tmp_path: Path) -> None:
    (tmp_path / "uringloop").mkdir()
    (tmp_path / "uringloop/__init__.py").write_text("raise ImportError('compiled for another Python')")
    out, error = started(LOOP, tmp_path)
    assert out.startswith("asyncio.")
    assert error == f"uringloop run: {sys.executable} stays on asyncio: compiled for another Python\n"


def test_uringloop_is_found_beside_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that can't import uringloop by itself runs the one that `uringloop run` ran."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    code = f"import sys; sys.path[:] = [p for p in sys.path if 'lib/python' in p and 'site-packages' not in p]; {LOOP}"
    out, error = started(f"{code}; print({os.path.dirname(os.path.dirname(FOLDER))!r} in sys.path)")
    assert (out, error) == ("uringloop.loop\nFalse\n", "")
