"""The page about confinement and its seccomp profile say what the library does."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests._core.kernel.test_probe import SMOKE
from tests._core.kernel.test_restriction import FILES, RESTRICTED, constants
from tests.confined import PROFILE, system_calls
from uringloop._core.kernel import restriction

PROJECT = Path(__file__).resolve().parents[2]
PAGE = (PROJECT / "docs/confinement.md").read_text()
RULES = json.loads(PROFILE.read_text())["syscalls"]
NAMES = [name for rule in RULES for name in rule["names"]]
IO_URING = {"io_uring_setup", "io_uring_enter", "io_uring_register"}

confinable = pytest.mark.skipif(
    not system_calls(), reason="needs x86-64 and the kernel's headers, to know the numbers of system calls"
)

REFUSED = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWUSER, SIGCHLD = 0x10000000, 17
unshare, clone, ptrace, bpf = 272, 56, 101, 321
refused = [(unshare, CLONE_NEWUSER), (clone, CLONE_NEWUSER | SIGCHLD, 0, 0), (ptrace, 0, 0), (bpf, 0)]
for call, *arguments in refused:
    made = libc.syscall(call, *arguments)
    assert (made, ctypes.get_errno()) == (-1, 1), call
"""


def confined(code: str, **environment: str) -> str:
    command = [sys.executable, str(PROJECT / "tests/confined.py"), sys.executable, "-c", code]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=30, env={**os.environ, **environment}
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_profile_names_each_system_call_once() -> None:
    assert len(NAMES) == len(set(NAMES))
    assert set(NAMES) >= IO_URING


@confinable
def test_the_profile_names_system_calls_that_exist() -> None:
    known = system_calls()
    newer = {"fchmodat2"}  # headers of the kernel before 6.6 lack it
    assert set(NAMES) - set(known) <= newer


@confinable
@RESTRICTED
@pytest.mark.parametrize("code", [SMOKE, FILES], ids=["network", "files"])
@pytest.mark.engines("uring", "epoll")
def test_loops_run_under_the_profile_with_restricted_rings(engine: str, code: str) -> None:
    confined(code, URINGLOOP_RESTRICT="1", URINGLOOP_DISABLE="")


@confinable
def test_the_profile_refuses_the_rest() -> None:
    confined(REFUSED)


def named(heading: str) -> set[str]:
    """The words in backticks of the row that begins so."""
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| {heading} |"))
    return set(re.findall(r"`(\w+)`", row))


def test_the_page_lists_what_a_restricted_ring_may_do() -> None:
    numbers = constants()
    assert named("operations") == {restriction.NAMES[number] for number in restriction.OPERATIONS}
    assert {numbers[name] for name in named("register calls")} == restriction.CALLS
    assert sum(numbers[name] for name in named("flags of an entry")) == restriction.FLAGS
