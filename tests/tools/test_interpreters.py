"""tools/interpreters finds what the machine has, and says so if it hasn't."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools/interpreters"
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"


def asked(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TOOL, *arguments], capture_output=True, text=True, check=False, env=environment or None
    )


@pytest.mark.skipif(bool(sys.abiflags), reason="`find` is for interpreters with the GIL")
def test_an_interpreter_of_path_is_found(tmp_path: Path) -> None:
    (tmp_path / f"python{VERSION}").symlink_to(sys.executable)
    found = asked("find", VERSION, PATH=f"{tmp_path}:/usr/bin:/bin", HOME=str(tmp_path))
    assert found.stdout.strip() == str(tmp_path / f"python{VERSION}")


def test_a_program_of_that_name_that_is_another_version_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "python3.99").symlink_to(sys.executable)
    found = asked("find", "3.99", PATH=f"{tmp_path}:/usr/bin:/bin", HOME=str(tmp_path))
    assert (found.returncode, found.stdout) == (1, "")
    assert "no Python 3.99 here" in found.stderr


@pytest.mark.parametrize("arguments", [(), ("--help",), ("nonsense",)])
def test_other_arguments_print_the_usage(arguments: tuple[str, ...]) -> None:
    said = asked(*arguments)
    assert said.returncode == 2
    assert "tools/interpreters find VERSION" in said.stderr
