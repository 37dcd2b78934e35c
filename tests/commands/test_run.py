import os
import subprocess
import sys
from pathlib import Path

import pytest

from uringloop.__main__ import main
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


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "say which program"),
        (["nowhere.py"], "there is no nowhere.py"),
        (["/"], "/ is a folder without a __main__.py"),
        (["-m"], "expected one argument"),
        (["-m", "nowhere"], "there is no module nowhere"),
        (["-m", "nowhere.deep"], "there is no module nowhere.deep"),
        (["-m", "email.nowhere"], "there is no module email.nowhere"),
        (["-m", ".relative"], "there is no module .relative"),
        (["-m", "email"], "email is a package without a __main__"),
        (["--engine", "steam", "a.py"], "invalid choice: 'steam'"),
        (["--nothing", "a.py"], "unrecognized arguments: --nothing (see uringloop {command} --help)"),
        (["--debug", "a.py"], "unrecognized arguments: --debug (see uringloop {command} --help)"),
        (["-c", "pass"], "unrecognized arguments: -c (see uringloop {command} --help)"),
    ],
)
@pytest.mark.parametrize("command", ["run", "trace"])
def test_wrong_arguments_are_reported_in_one_line(
    command: str,
    given: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(f"uringloop.commands.{command}.redirect", lambda keep_uvloop: None)  # of this process
    try:
        code: object = main([command, *given])
    except SystemExit as ended:
        code = ended.code
    error = capsys.readouterr().err
    assert code == 2 and said.format(command=command) in error and len(error.splitlines()) == 1, error


def as_python_does(script: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(script)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize(
    "text", ["def", "1 / 0", "raise KeyboardInterrupt", "import nowhere", "raise SystemExit(4)"]
)
def test_a_program_fails_as_under_python(tmp_path: Path, text: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(f"def f():\n    pass\n\n{text}\n")
    ours, its = run(script), as_python_does(script)
    assert (ours.returncode, ours.stderr) == (its.returncode, its.stderr)


def test_a_program_sees_what_it_sees_under_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import __main__, atexit, sys\n"
        "print(__name__, __file__, __spec__, __package__, __loader__.name, sys.argv, __main__.__dict__ is globals())\n"
        "atexit.register(lambda: print(__main__ is sys.modules['__main__']))\n"
    )
    monkeypatch.chdir(tmp_path)
    ours, its = run("program.py"), as_python_does(Path("program.py"))
    assert (ours.stdout, ours.stderr) == (its.stdout, "")


def test_an_import_error_inside_the_module_keeps_its_traceback(
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
        (["--keep-uvloop", "a.py", "--keep-uvloop"], ["--keep-uvloop"]),
        ([], []),
    ],
)
def test_the_program_s_arguments_are_its_own(given: list[str], ours: list[str]) -> None:
    assert split(given) == (ours, given[len(ours) :])
