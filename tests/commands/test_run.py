import os
import subprocess
import sys
from pathlib import Path

import pytest

from uringloop.commands.run import split

PROGRAM = """
import asyncio, sys

async def main():
    print(type(asyncio.get_running_loop()).__module__, sys.argv[1:], __name__)
    return 3

if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
"""


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "uringloop", "run", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30)


def test_a_script_runs_on_our_loop_with_its_arguments_and_exit_code(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    ended = run("--engine", "epoll", script, "-m", "--engine", "x")
    assert (ended.stdout, ended.returncode) == ("uringloop.loop ['-m', '--engine', 'x'] __main__\n", 3), (
        ended.stderr
    )


def test_a_module_runs_too() -> None:
    ended = run("-m", "timeit", "-n", "1", "-r", "1", "import asyncio; print(asyncio.new_event_loop())")
    assert "<EventLoop " in ended.stdout, ended.stderr
    assert "1 loop" in ended.stdout


def test_a_program_that_is_missing_is_said() -> None:
    assert run().returncode == 2
    ended = run("nowhere.py")
    assert ended.returncode == 2
    assert "nowhere.py" in ended.stderr


@pytest.mark.parametrize("module", ["nowhere", "nowhere.deep", "email.nowhere"])
def test_a_module_that_is_missing_is_said(module: str) -> None:
    ended = run("-m", module)
    assert (ended.stderr, ended.returncode) == (f"uringloop run: there is no module {module}\n", 2)


def test_what_is_missing_inside_a_module_is_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text("import nowhere")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    ended = run("-m", "broken")
    assert ended.stderr.endswith("ModuleNotFoundError: No module named 'nowhere'\n")


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        (["a.py", "--engine", "x"], []),
        (["--engine", "uring", "a.py", "-m"], ["--engine", "uring"]),
        (["--engine=uring", "-m", "a", "-m", "b"], ["--engine=uring", "-m", "a"]),
        ([], []),
    ],
)
def test_the_program_s_arguments_are_its_own(given: list[str], ours: list[str]) -> None:
    assert split(given) == (ours, given[len(ours) :])
