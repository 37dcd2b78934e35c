from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from uringloop.__main__ import main

Start = Callable[..., "subprocess.Popen[str]"]


def ended(child: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, error = child.communicate()
    return child.returncode, out, error


def events(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return found


def names(path: Path) -> set[str]:
    return {event["name"].rsplit(".", 1)[-1] for event in events(path)}


def test_a_script_is_traced_until_it_ends(start: Start, server: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    child = start("trace", "-o", path, server, "-o", "argument")
    assert child.stdout is not None and child.stdin is not None
    assert child.stdout.readline() == "ready -o argument\n"
    child.stdin.close()
    child.stdin = None
    code, _, error = ended(child)
    assert code == 0, error
    assert f"{len(events(path))} events in {path}" in error
    assert {"turn", "sleep", "talk", "AcceptOp", "WakeOp"} <= names(path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_program_and_trace(start: Start, server: Path, tmp_path: Path, number: int) -> None:
    path = tmp_path / "out.json"
    child = start("trace", "-o", path, server)
    assert child.stdout is not None
    child.stdout.readline()
    child.send_signal(number)
    assert child.stdin is not None
    child.stdin.close()  # what its thread reads
    child.stdin = None
    code, _, error = ended(child)
    assert code == (-number if number == signal.SIGINT else 128 + number), error
    assert {"turn", "talk"} <= names(path)


def test_the_exit_code_is_the_program_s(start: Start, tmp_path: Path) -> None:
    path, script = tmp_path / "out.json", tmp_path / "program.py"
    for statement, code in (("sys.exit(5)", 5), ("sys.exit()", 0), ("sys.exit('no')", 1), ("1 / 0", 1)):
        script.write_text(f"import asyncio, sys\nasyncio.run(asyncio.sleep(0))\n{statement}\n")
        got, _, error = ended(start("trace", "-o", path, script))
        assert got == code, error
        assert "turn" in names(path)
    assert "ZeroDivisionError" in error


def test_the_option_seconds_ends_the_trace_and_not_the_program(
    start: Start, server: Path, tmp_path: Path
) -> None:
    path = tmp_path / "out.json"
    child = start("trace", "--seconds", "0.05", "--records", "200", "-o", path, server)
    assert child.stderr is not None and child.stdin is not None
    assert "events in" in child.stderr.readline()
    assert child.poll() is None
    before = path.read_bytes()
    child.stdin.close()
    child.stdin = None
    assert ended(child)[0] == 0
    assert path.read_bytes() == before


def test_a_module_is_traced_too(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    statement = "import asyncio; asyncio.run(asyncio.sleep(0))"
    code, _, error = ended(start("trace", "-o", path, "-m", "timeit", "-n", "1", "-r", "1", statement))
    assert code == 0, error
    assert "turn" in names(path)


def test_a_process_is_traced_for_some_seconds(
    start: Start, serving: subprocess.Popen[str], tmp_path: Path
) -> None:
    path = tmp_path / "out.json"
    code, _, error = ended(start("trace", "--seconds", "0.05", "-o", path, serving.pid))
    assert code == 0, error
    assert {"turn", "talk"} <= names(path)
    assert {event["pid"] for event in events(path)} == {serving.pid}


def test_a_process_is_traced_until_ctrl_c(
    start: Start, serving: subprocess.Popen[str], tmp_path: Path
) -> None:
    path = tmp_path / "out.json"
    child = start("trace", "-o", path, serving.pid)
    assert child.stderr is not None
    assert "Ctrl-C" in child.stderr.readline()
    child.send_signal(signal.SIGINT)
    code, _, error = ended(child)
    assert code == 0, error
    assert events(path)
    assert serving.poll() is None


def test_the_end_of_the_process_is_reported_in_one_line(
    start: Start, serving: subprocess.Popen[str], tmp_path: Path
) -> None:
    child = start("trace", "-o", tmp_path / "out.json", serving.pid)
    assert child.stderr is not None
    child.stderr.readline()
    serving.kill()
    serving.wait()
    code, _, error = ended(child)
    assert (code, len(error.splitlines())) == (1, 1), error


def test_a_full_disk_is_reported_in_one_line(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "short.py"
    script.write_text("import asyncio; asyncio.run(asyncio.sleep(0))")
    code, _, error = ended(start("trace", "-o", "/dev/full", script))
    assert code == 1
    assert "No space left on device" in error and len(error.splitlines()) == 1, error


def test_a_program_that_cannot_be_traced_is_reported_in_one_line(
    runtime: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uringloop.commands.trace.redirect", lambda keep_uvloop: None)  # of this process
    script = tmp_path / "never_run.py"
    script.write_text("1 / 0")
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    for given, code, said in (
        (["-o", tmp_path / "nowhere" / "x", script], 1, "No such file"),
        (["-o", tmp_path / "x", gone.pid], 1, "there is no process"),
        (["-o", tmp_path / "x", os.getpid()], 1, "URINGLOOP_INSPECT=1"),
        ([tmp_path / "nowhere.py"], 2, "there is no"),
        ([], 2, "say which program"),
        (["--records", "0", script], 2, "--records"),
        (["--seconds", "-1", script], 2, "--seconds"),
    ):
        assert main(["trace", *map(str, given)]) == code
        error = capsys.readouterr().err
        assert said in error and len(error.splitlines()) == 1, error


def test_a_process_s_trace_meets_a_full_disk(start: Start, serving: subprocess.Popen[str]) -> None:
    code, _, error = ended(start("trace", "--seconds", "0.05", "-o", "/dev/full", serving.pid))
    assert code == 1
    assert "No space left on device" in error.splitlines()[-1] and len(error.splitlines()) == 2
