from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from uringloop.__main__ import main

Start = Callable[..., "subprocess.Popen[str]"]


def ended(child: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, error = child.communicate()
    return child.returncode, out, error


def test_the_option_once_prints_plain_text(start: Start, serving: subprocess.Popen[str]) -> None:
    code, out, error = ended(start("top", "--once", "--interval", "0.05", serving.pid))
    assert (code, error) == (0, "")
    assert f"process {serving.pid}" in out
    assert "loop 1:" in out and "busy " in out and "AcceptOp 1" in out
    assert "talks" in out and "server.py:" in out


def test_json_is_for_programs(start: Start, serving: subprocess.Popen[str]) -> None:
    code, out, _ = ended(start("top", "--once", "--json", "--interval", "0.05", serving.pid))
    found = json.loads(out)
    assert (code, found["pid"]) == (0, serving.pid)
    (loop,) = found["loops"]
    assert loop["rates"]["turns"] > 0
    assert 0 <= loop["rates"]["busy"] <= 1
    assert loop["slowest"]


def test_the_end_of_the_process_is_reported_in_one_line(start: Start, serving: subprocess.Popen[str]) -> None:
    looking = start("top", "--json", "--interval", "0.01", serving.pid)
    assert json.loads(looking.stdout.readline())["pid"] == serving.pid  # type: ignore[union-attr]
    serving.kill()
    serving.wait()
    code, _, error = ended(looking)
    assert code == 1
    assert len(error.splitlines()) == 1 and error.startswith(f"uringloop top: process {serving.pid} h")


def test_ctrl_c_ends_it(start: Start, serving: subprocess.Popen[str]) -> None:
    looking = start("top", "--json", "--interval", "0.01", serving.pid)
    looking.stdout.readline()  # type: ignore[union-attr]
    looking.send_signal(signal.SIGINT)
    code, _, error = ended(looking)
    assert (code, error) == (0, "")
    assert serving.poll() is None


def test_a_reader_that_had_enough_is_no_error(start: Start, serving: subprocess.Popen[str]) -> None:
    looking = start("top", "--json", "--interval", "0.01", serving.pid)
    assert looking.stdout is not None and looking.stderr is not None
    looking.stdout.readline()
    looking.stdout.close()
    assert looking.wait() == 0
    assert looking.stderr.read() == ""


def test_a_script_is_started_and_stopped(start: Start, server: Path, runtime: Path) -> None:
    code, out, error = ended(start("top", "--once", "--json", "--interval", "0.05", server, "for-ever"))
    assert code == 0, error
    found = json.loads(out)
    assert found["command"][-1] == "for-ever"
    with pytest.raises(ProcessLookupError):
        os.kill(found["pid"], 0)
    assert os.listdir(runtime) == []


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ("import sys; sys.exit(5)", 5, "before it made a loop"),
        ("import uringloop, sys; uringloop.new_event_loop(); sys.stdout.flush(); sys.exit(6)", 6, "ended"),
    ],
)
def test_the_exit_code_of_the_script_is_reported(
    start: Start, tmp_path: Path, program: str, code: int, said: str
) -> None:
    script = tmp_path / "short.py"
    script.write_text(program)
    got, _, error = ended(start("top", "--json", "--interval", "0.01", script))
    assert got == code
    assert said in error


def test_a_process_that_cannot_be_inspected_is_reported_in_one_line(
    runtime: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    for given, code, said in (
        ([gone.pid], 1, "there is no process"),
        ([os.getpid()], 1, "URINGLOOP_INSPECT=1"),
        ([tmp_path / "nowhere.py"], 2, "there is no"),
        ([], 2, "say which program"),
        (["--interval", "0", os.getpid()], 2, "--interval"),
        (["--interval", "nan", os.getpid()], 2, "--interval"),
    ):
        assert main(["top", "--once", *map(str, given)]) == code
        out, error = capsys.readouterr()
        assert out == ""
        assert said in error and len(error.splitlines()) == 1, error


WITHOUT = {
    "import asyncio; print('ready', flush=True); asyncio.run(asyncio.sleep(3600))": "has no loop of uringloop",
    "import uringloop; print('ready', flush=True); input()": "opens no inspector",
    "import os; print('ready', flush=True); os.execvp('sleep', ['sleep', '3600'])": "is no Python program",
}


@pytest.mark.parametrize("program", WITHOUT)
def test_a_process_without_our_loops_or_an_inspector_is_told_apart(
    runtime: Path, capsys: pytest.CaptureFixture[str], program: str
) -> None:
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        while "execvp" in program and "sleep" not in os.readlink(f"/proc/{child.pid}/exe"):
            pass
        try:
            assert main(["top", "--once", str(child.pid)]) == 1
        finally:
            child.kill()
    error = capsys.readouterr().err
    assert WITHOUT[program] in error and len(error.splitlines()) == 1, error


def test_an_inspector_without_a_loop_says_so(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "stock.py"
    script.write_text(
        "import asyncio\n"
        "from uringloop.inspect import serve\n"
        "serve()\n"
        "print('ready', flush=True)\n"
        "asyncio.SelectorEventLoop().run_until_complete(asyncio.sleep(3600))\n"
    )
    child = start("run", script)
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    out, _ = start("top", "--once", "--interval", "0.01", child.pid).communicate()
    assert "It has no loop of uringloop now." in out


def test_without_rich_top_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert main(["top", str(os.getpid())]) == 2
    assert "pip install 'uringloop-asyncio[top]'" in capsys.readouterr().err


def test_the_live_view_shows_the_program_and_what_it_writes(runtime: Path, server: Path) -> None:
    pytest.importorskip("rich", reason="the extra top is not installed")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "uringloop", "top", "--interval", "0.05", str(server), "for-ever"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "150", "LINES": "60"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as looking:
        os.close(theirs)
        seen = b""
        while not (b"talks" in seen and b"callbacks/s" in seen and b"ready for-ever" in seen):
            seen += os.read(ours, 65536)
        looking.send_signal(signal.SIGINT)
        try:
            while rest := os.read(ours, 65536):
                seen += rest
        except OSError:  # a terminal without a program
            pass
        assert looking.wait() == 0, seen
    os.close(ours)
    assert b"Traceback" not in seen
