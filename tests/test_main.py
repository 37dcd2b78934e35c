import subprocess
import sys

import pytest

import uringloop
from uringloop.__main__ import COMMANDS, main, run


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"uringloop {uringloop.__version__}\n"


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "bench"])
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert command in capsys.readouterr().out


def test_without_a_command_the_help_is_shown() -> None:
    ended = subprocess.run([sys.executable, "-m", "uringloop"], capture_output=True, text=True, timeout=30)
    assert ended.returncode == 2
    assert all(name in ended.stderr for name in COMMANDS)


def test_an_interrupted_command_ends_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("uringloop.__main__.main", interrupted)
    monkeypatch.setattr(sys, "argv", ["uringloop", "bench"])
    assert run() == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_reader_that_ends_first_is_no_error() -> None:
    doctor = subprocess.Popen(
        [sys.executable, "-m", "uringloop", "doctor"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert doctor.stdout is not None and doctor.stderr is not None
    doctor.stdout.close()
    assert doctor.stderr.read() == ""
    doctor.stderr.close()
    assert doctor.wait(30) == 141
