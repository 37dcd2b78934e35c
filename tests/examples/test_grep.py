import subprocess
from pathlib import Path

from tests.examples.programs import command_of, output_of


def test_it_finds_the_lines(tmp_path: Path) -> None:
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "deep/er/one").write_text("a\nneedle here\nneedle\n")
    (tmp_path / "two").write_bytes(b"\xff needle\n")
    assert output_of("grep.py", "needle", tmp_path).splitlines() == [
        f"{tmp_path}/two:1: \ufffd needle",
        f"{tmp_path}/deep/er/one:2: needle here",
        f"{tmp_path}/deep/er/one:3: needle",
    ]


def test_without_arguments_it_says_how_it_is_called() -> None:
    run = subprocess.run(command_of("grep.py"), capture_output=True, text=True)
    assert run.returncode == 1 and "grep.py WORD FOLDER" in run.stderr
