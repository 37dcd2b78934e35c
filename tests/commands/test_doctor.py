import json
from collections.abc import Callable
from typing import Any

import pytest

from uringloop._core.kernel.probe import refusal

DOCTOR = "import sys; from uringloop.__main__ import main; sys.exit(main(['doctor', *sys.argv[1:]]))"
Program = Callable[..., Any]


def test_doctor_reports_the_kernel_and_tries_a_loop(program: Program) -> None:
    ended = program(DOCTOR, check=False)
    assert ended.returncode == (0 if refusal() is None else 1), ended.stderr
    assert "A loop was made" in ended.stdout and "kernel" in ended.stdout
    assert ended.stderr == ""


@pytest.mark.parametrize("error", ["EPERM", "ENOSYS"])
def test_a_refusal_is_reported_with_its_remedy(program: Program, error: str) -> None:
    ended = program(DOCTOR, refuse=error, check=False)
    assert ended.returncode == 1, ended.stderr
    assert error in ended.stdout and "What to do" in ended.stdout and "seccomp" in ended.stdout
    assert "on epoll, and works" in ended.stdout


@pytest.mark.parametrize("refuse", ["", "EPERM"])
def test_a_chosen_epoll_engine_is_not_a_refusal(program: Program, refuse: str) -> None:
    ended = program(DOCTOR, refuse=refuse, URINGLOOP_ENGINE="epoll")
    assert "URINGLOOP_ENGINE chooses epoll. A loop was made, on epoll, and works" in ended.stdout
    assert "is used" not in ended.stdout.splitlines()[0] and "instead" not in ended.stdout
    found = json.loads(program(DOCTOR, "--json", refuse=refuse, URINGLOOP_ENGINE="epoll").stdout)
    assert (found["chosen"], found["engine"], found["tried"]) == (True, "epoll", "epoll")
    assert found["usable"] == (not refuse and refusal() is None)


def test_json_is_for_programs(program: Program) -> None:
    found = json.loads(program(DOCTOR, "--json", refuse="EPERM", check=False).stdout)
    assert found["usable"] is False
    assert found["engine"] == found["tried"] == "epoll"
    assert found["advice"]


def test_no_loop_at_all_is_exit_code_2(program: Program) -> None:
    ended = program(DOCTOR, refuse="EPERM", check=False, URINGLOOP_ENGINE="uring")
    assert ended.returncode == 2
    assert "No loop can be made here" in ended.stdout
    ended = program(DOCTOR, "--json", check=False, URINGLOOP_DISABLE="no such thing")
    assert ended.returncode == 2
    assert "no such" in json.loads(ended.stdout)["cause"]
