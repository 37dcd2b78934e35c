from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from uringloop.errors import InspectionFailed
from uringloop.inspect import serve
from uringloop.inspect.client import Client, NoAnswer
from uringloop.inspect.server import socket_name

SERVES = """
import sys, uringloop
from uringloop.inspect import serve
serve()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def serving(runtime: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        yield child
        child.kill()


def unused_number() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        pass
    return child.pid


def test_another_process_answers(serving: subprocess.Popen[str]) -> None:
    with Client(serving.pid) as client:
        assert client.snapshot()["pid"] == serving.pid
        assert client.trace(0.001, 100)["traceEvents"]


def test_an_inspector_is_found_in_a_folder_of_another_environment(
    serving: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_here = serve().path.parent
    monkeypatch.setattr("uringloop.inspect.client._places", lambda owner: [Path("/nowhere"), serve_here])
    with Client(serving.pid) as client:
        assert client.snapshot()["pid"] == serving.pid


def test_a_missing_process_is_an_error() -> None:
    with pytest.raises(InspectionFailed, match="there is no process"):
        Client(unused_number())


def test_a_process_without_an_inspector_is_an_error(runtime: Path) -> None:
    with pytest.raises(InspectionFailed, match="URINGLOOP_INSPECT=1"):
        Client(os.getpid())


def test_a_process_of_another_user_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 2**31 - 2)
    with pytest.raises(InspectionFailed, match="only its own user"):
        Client(os.getpid())


def test_a_process_that_ends_between_two_answers_is_an_error(serving: subprocess.Popen[str]) -> None:
    with Client(serving.pid) as client:
        client.snapshot()
        serving.kill()
        serving.wait()
        with pytest.raises(InspectionFailed, match="has ended"):
            client.snapshot()


@pytest.mark.parametrize("early", [True, False])
def test_a_trace_without_end_is_stopped(serving: subprocess.Popen[str], early: bool) -> None:
    with Client(serving.pid) as client:
        if early:  # a signal, before it was asked for
            client.stop()
        else:
            timer = threading.Timer(0.01, client.stop)
            timer.start()
        assert client.trace(0, 100)["traceEvents"]
        if not early:
            timer.join()


def test_an_error_of_the_inspected_process_is_raised_here(serving: subprocess.Popen[str]) -> None:
    with Client(serving.pid) as client:
        with pytest.raises(InspectionFailed, match="room must be at least 1"):
            client.trace(1, 0)
        assert client.snapshot()["pid"] == serving.pid


def test_a_process_whose_backlog_is_full_does_not_answer(runtime: Path) -> None:
    with socket.socket(socket.AF_UNIX) as never_accepts:
        never_accepts.bind(str(runtime / socket_name(os.getpid())))
        never_accepts.listen(0)
        waiting = [Client(os.getpid())]
        with pytest.raises(NoAnswer, match="does not answer"):
            while len(waiting) < 100:
                waiting.append(Client(os.getpid()))
        for client in waiting:
            client.close()
