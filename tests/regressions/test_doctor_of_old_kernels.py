"""Where io_uring is refused, doctor does not say that anything of it is used."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from uringloop._core.kernel.probe import refusal

Program = Callable[..., Any]

pytestmark = pytest.mark.skipif(refusal() is not None, reason="this machine refuses io_uring itself")

DOCTOR = "import sys; from uringloop.__main__ import main; sys.exit(main(['doctor', *sys.argv[1:]]))"


@pytest.fixture(scope="module")
def other_kernel(tmp_path_factory: pytest.TempPathFactory) -> str:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    library = tmp_path_factory.mktemp("preloaded") / "other_kernel.so"
    source = Path(__file__).with_name("other_kernel.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return str(library)


def used(report: Any) -> list[str]:
    return [name for name, feature in report["features"].items() if feature["used"]]


def test_doctor_reports_no_ring_features_on_a_kernel_that_is_too_old(
    program: Program, other_kernel: str
) -> None:
    old = {"LD_PRELOAD": other_kernel, "KERNEL": "no probe", "URINGLOOP_ENGINE": ""}
    found = json.loads(program(DOCTOR, "--json", check=False, **old).stdout)
    assert found["usable"] is False and found["engine"] == found["tried"] == "epoll"
    assert used(found) in ([], ["udp_segment"])
    notes = [feature["note"] for feature in found["features"].values()]
    assert not any("is used" in note for note in notes), notes


@pytest.mark.parametrize("name", ["EPERM", "ENOSYS"])
def test_doctor_reports_no_ring_features_if_io_uring_is_refused(program: Program, name: str) -> None:
    found = json.loads(program(DOCTOR, "--json", refuse=name, check=False, URINGLOOP_ENGINE="").stdout)
    assert used(found) in ([], ["udp_segment"])
    notes = {name: feature["note"] for name, feature in found["features"].items() if not feature["used"]}
    # The kernel may well have it: what is refused is not "not offered".
    assert all(note.startswith(("no ring", "not used", "switched off")) for note in notes.values()), notes
