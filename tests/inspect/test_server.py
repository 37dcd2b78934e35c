from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from uringloop.errors import InspectionFailed, InspectorWarning
from uringloop.inspect import Inspector, serve, server
from uringloop.inspect.client import Client
from uringloop.inspect.observers import Observer


@pytest.fixture
def inspector(runtime: Path) -> Inspector:
    return serve()


def raw(inspector: Inspector, request: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(inspector.path))
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(65536):
            answer += part
        return answer


def test_the_socket_is_the_user_s_alone_and_named_after_the_process(
    inspector: Inspector, runtime: Path
) -> None:
    assert inspector.path == runtime / f"uringloop-{os.getpid()}.sock"
    found = inspector.path.stat()
    assert stat.S_ISSOCK(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o600
    assert str(inspector.path) in repr(inspector)


def test_a_process_has_one_inspector_until_it_is_closed(inspector: Inspector) -> None:
    assert serve() is inspector
    inspector.close()
    inspector.close()
    assert not inspector.path.exists()
    assert "closed" in repr(inspector)
    with serve() as again:
        assert again is not inspector
        assert again.path.exists()
    assert not again.path.exists()


def test_loops_of_all_threads_are_shown(inspector: Inspector, run_in_thread: Callable[..., Any]) -> None:
    first, second = run_in_thread("first"), run_in_thread("second")
    with Client(os.getpid()) as client:
        found = {loop["number"]: loop for loop in client.snapshot()["loops"]}
    for running, name in ((first, "first"), (second, "second")):
        shown = found[running.loop._number]
        assert (shown["thread"], shown["state"]) == (name, "running")
        assert shown["operations"] is not None


def test_the_inspector_answers_although_a_loop_is_stuck(inspector: Inspector, running: Any) -> None:
    free = threading.Event()

    def stuck_here() -> None:
        free.wait()

    with Client(os.getpid()) as client:
        client.snapshot()
        running.loop.call_soon_threadsafe(stuck_here)
        while True:
            (loop,) = (each for each in client.snapshot()["loops"] if each["number"] == running.loop._number)
            if loop["running"] is not None and loop["running"]["stack"]:
                break
        free.set()
    assert "stuck_here" in loop["running"]["name"]
    assert "in stuck_here" in "".join(loop["running"]["stack"])


@pytest.mark.parametrize(
    ("request_line", "said"),
    [
        (b"no JSON\n", "JSONDecodeError"),
        (b"[]\n", "TypeError"),
        (b"{}\n", "KeyError"),
        (b'{"want": "money"}\n', "unknown request 'money'"),
        (b'{"want": "trace", "room": 0}\n', "room must be"),
    ],
)
def test_invalid_requests_get_an_error_answer(inspector: Inspector, request_line: bytes, said: str) -> None:
    assert said in json.loads(raw(inspector, request_line))["error"]


def test_a_request_that_is_too_long_ends_the_connection(inspector: Inspector) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(inspector.path))
        try:
            connection.sendall(b"x" * 100_000)
            assert connection.recv(1) == b""
        except (BrokenPipeError, ConnectionResetError):
            pass


def test_several_requests_on_one_connection(inspector: Inspector) -> None:
    lines = raw(inspector, b'{"want": "snapshot"}\n{"want": "snapshot", "tasks": 0}\n').splitlines()
    assert [json.loads(line)["pid"] for line in lines] == [os.getpid()] * 2


def test_too_many_clients_are_refused(inspector: Inspector) -> None:
    clients = [Client(os.getpid()) for _ in range(server.MOST_CLIENTS)]
    for client in clients:
        client.snapshot()
    with Client(os.getpid()) as one_too_many, pytest.raises(InspectionFailed, match="too many clients"):
        one_too_many.snapshot()
    for client in clients:
        client.close()


def test_a_client_of_another_user_is_disconnected(
    inspector: Inspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(inspector.path))
        try:
            assert connection.recv(1) == b""
        except ConnectionResetError:
            pass


def test_closing_ends_what_clients_wait_for(inspector: Inspector) -> None:
    ended: list[Any] = []

    def wait_for_trace() -> None:
        with Client(os.getpid()) as client:
            try:
                ended.append(client.trace(0, 10))
            except InspectionFailed as error:
                ended.append(error)

    thread = threading.Thread(target=wait_for_trace)
    thread.start()
    while not inspector._clients:
        time.sleep(0)
    inspector.close()
    thread.join()
    assert len(ended) == 1


def test_the_socket_of_a_killed_process_is_replaced(runtime: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(str(runtime / server.socket_name(os.getpid())))
    with serve() as inspector:
        assert inspector.path.parent == runtime
        assert json.loads(raw(inspector, b'{"want": "snapshot"}\n'))["pid"] == os.getpid()


def test_stale_sockets_are_removed_and_used_ones_stay(runtime: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    with socket.socket(socket.AF_UNIX) as left_over, socket.socket(socket.AF_UNIX) as begins:
        left_over.bind(str(runtime / server.socket_name(gone.pid)))
        begins.bind(str(runtime / server.socket_name(os.getppid())))  # does not listen yet
    (runtime / "uringloop-notes.sock").touch()
    with serve():
        assert sorted(os.listdir(runtime)) == sorted(
            [server.socket_name(os.getpid()), server.socket_name(os.getppid()), "uringloop-notes.sock"]
        )


def test_a_socket_that_listens_is_not_replaced(runtime: Path) -> None:
    """In another container, say, which has our number and shares the folder."""
    with socket.socket(socket.AF_UNIX) as theirs:
        theirs.bind(str(runtime / server.socket_name(os.getpid())))
        theirs.listen()
        with serve() as inspector:
            assert inspector.path.parent == Path("/tmp")
        assert (runtime / server.socket_name(os.getpid())).exists()


def test_without_a_place_for_it_the_program_is_warned_and_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "folders", lambda: [Path("/nowhere")])
    monkeypatch.setattr(server, "_warned", False)
    with pytest.raises(FileNotFoundError, match="/nowhere/uringloop-"):
        serve()
    with pytest.warns(InspectorWarning, match="/nowhere/uringloop-"):
        server.serve_as_asked()
    server.serve_as_asked()  # says it once


def test_a_client_that_left_observes_no_more(inspector: Inspector, running: Any) -> None:
    with Client(os.getpid()) as client:
        client.snapshot()
        with Observer(0):
            pass
    inspector.close()  # waits for the threads; the fixture asserts that nobody looks


ENVIRONMENT = """
import os, sys, uringloop
from pathlib import Path
path = Path(os.environ["XDG_RUNTIME_DIR"], f"uringloop-{os.getpid()}.sock")
assert not path.exists()
loop = uringloop.new_event_loop()
assert path.exists() == (sys.argv[1] == "open"), path
loop.close()
print(path)
"""


@pytest.mark.parametrize(("value", "expected"), [("1", "open"), ("0", "not"), ("", "not")])
def test_the_environment_opens_it_and_the_end_removes_it(
    engine: str, program: Callable[..., Any], runtime: Path, value: str, expected: str
) -> None:
    ended = program(ENVIRONMENT, expected, URINGLOOP_INSPECT=value)
    assert not Path(ended.stdout.strip()).exists()


FORK = """
import os, sys, uringloop
from pathlib import Path
from uringloop.inspect import serve, server
folder = Path(os.environ["XDG_RUNTIME_DIR"])
ours = serve()
number = ours._listening.fileno()
if os.fork() == 0:
    try:
        assert server._serving is None and ours.closed
        try:
            os.fstat(number)
        except OSError:
            pass
        else:
            raise AssertionError("the child has the parent's socket")
        os.environ["URINGLOOP_INSPECT"] = "1"
        loop = uringloop.new_event_loop()
        assert (folder / f"uringloop-{os.getpid()}.sock").exists()
        loop.close()
        server._serving.close()
        ours.close()
        assert os.listdir(folder) == [ours.path.name]
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
assert ours.path.exists() and server._serving is ours
"""


def test_a_forked_child_has_an_inspector_of_its_own(
    engine: str, program: Callable[..., Any], runtime: Path
) -> None:
    ended = program("import warnings; warnings.simplefilter('ignore')\n" + FORK)
    assert not ended.stderr


OTHER_USER = 65534


def connected_as(user: int, path: Path) -> str:
    """What a process of the user gets from the socket: the name of an error, or "answered" or "refused"."""
    program = """
import os, socket, sys
path, user = sys.argv[1], int(sys.argv[2])
os.setgroups([])
os.setgid(user)
os.setuid(user)
connection = socket.socket(socket.AF_UNIX)
try:
    connection.connect(path)
    connection.sendall(b'{"want": "snapshot"}\\n')
    print("answered" if connection.recv(1) else "refused")
except ConnectionError:
    print("refused")
except OSError as error:
    print(type(error).__name__)
"""
    # Isolated: the user may not read this folder.
    command = [
        getattr(sys, "_base_executable", sys.executable),
        "-I",
        "-S",
        "-c",
        program,
        str(path),
        str(user),
    ]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=20, cwd="/"
    ).stdout.strip()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_process_of_another_user_gets_nothing(inspector: Inspector, runtime: Path) -> None:
    assert connected_as(0, inspector.path) == "answered"
    runtime.chmod(0o755)  # as /tmp, if there is no XDG_RUNTIME_DIR
    assert connected_as(OTHER_USER, inspector.path) == "PermissionError"
    inspector.path.chmod(0o666)  # what the mode would refuse, the inspector refuses as well
    assert connected_as(OTHER_USER, inspector.path) == "refused"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_socket_that_another_user_made_first_is_not_used(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In /tmp any user may make a file with the name; a left-over socket is replaced, never listened on."""
    shared, own = runtime / "shared", runtime / "own"
    for folder in (shared, own):
        folder.mkdir()
    monkeypatch.setattr(server, "folders", lambda: [shared, own])
    with socket.socket(socket.AF_UNIX) as theirs:
        path = shared / server.socket_name(os.getpid())
        theirs.bind(str(path))
        os.chown(path, OTHER_USER, OTHER_USER)
        theirs.listen()
        with serve() as inspector:
            assert inspector.path.parent == own
            assert stat.S_IMODE(inspector.path.stat().st_mode) == 0o600
