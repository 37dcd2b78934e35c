"""The demo compares what starts, and names what does not."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[2] / "tools/demo.py"


def run_demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(DEMO), "--seconds", "1", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_compares_the_loops_that_start_and_names_the_others() -> None:
    run = run_demo("--loops", "asyncio,no_such_loop")
    assert run.returncode == 0, run.stderr
    assert "no_such_loop is not compared" in run.stdout
    assert "No module named 'no_such_loop'" in run.stdout
    assert run.stdout.count("1.00 x asyncio") == 3


def test_fails_when_the_server_on_uringloop_does_not_start(tmp_path: Path) -> None:
    broken = tmp_path / "broken_demo.py"
    broken.write_text(DEMO.read_text().replace("module.new_event_loop", "None.no_factory"))
    command = [sys.executable, str(broken), "--loops", "uringloop"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 1, run.stderr
    assert "uringloop is not compared" in run.stdout


def test_ends_at_ctrl_c_without_a_traceback() -> None:
    command = [sys.executable, str(DEMO), "--seconds", "6", "--loops", "asyncio"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        while not demo.stdout.readline().startswith("add_reader on"):  # two more kinds are to come
            assert demo.poll() is None
        demo.send_signal(signal.SIGINT)
        _, errors = demo.communicate(timeout=60)
    assert demo.returncode == 1
    # The load may say a word of the server that is gone: it is of the same process group in a terminal, not here.
    assert "interrupted" in errors and "Traceback" not in errors


@pytest.mark.parametrize("wrong", [["--seconds", "0"], ["--loops", "no_such_loop"]])
def test_demo_reports_wrong_arguments(wrong: list[str]) -> None:
    run = run_demo(*wrong)
    assert run.returncode > 0 and "Traceback" not in run.stderr
