"""Servers that choose uvloop where it is installed run on uringloop under `uringloop run`, and after install(): each
worker process prints its loop, and the answer to a request names it."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.integrations.servers import OURS

pytest.importorskip("uvloop", reason="one of `make integrations`")
UVLOOP = "uvloop.Loop"
LINE = "uringloop run: uvloop makes uringloop's loops here (--keep-uvloop leaves it alone)\n"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


class Server:
    """A server process with its workers, in a folder of its own with the applications."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self.port = free_port()
        self.said = ""
        shutil.copytree(Path(__file__).parent / "own_choice", folder, dirs_exist_ok=True)
        path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [sys.executable, *(part.replace("PORT", str(self.port)) for part in command)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def loops(self, count: int) -> list[str]:
        """Read what the server prints until so many workers have reported; return the names of their loops."""
        assert self.process.stdout is not None
        while len(found := dict(re.findall(r"worker (\d+): (\S+)", self.said))) < count:
            line = self.process.stdout.readline()
            assert line, self.said
            self.said += line
        return list(found.values())

    def answer(self) -> str:
        """The answer to one request, as soon as a worker listens."""
        for _ in range(100):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=10) as answer:
                    return str(answer.read().decode())
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        raise AssertionError(self.said)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def served(folder: Path, command: list[str], workers: int = 1) -> tuple[set[str], str]:
    """The loops of all workers and of the answer, and what the server had printed when the last worker started."""
    server = Server(folder, command)
    try:
        return {*server.loops(workers), server.answer()}, server.said
    finally:
        server.kill()  # sanic 25.12 may wait for ever for its ended workers when SIGTERM comes early


@contextmanager
def touching(path: Path) -> Iterator[None]:
    """Change the file's time again and again, because the reloader may not look yet."""
    ended = threading.Event()

    def touch() -> None:
        while not ended.wait(1):
            os.utime(path)

    thread = threading.Thread(target=touch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


RUN = ["-m", "uringloop", "run"]
UVICORN = ["-m", "uvicorn", "asgi:app", "--port", "PORT"]
GUNICORN = ["-m", "gunicorn", "-w", "2", "-b", "127.0.0.1:PORT", "--no-control-socket", "-k"]
HYPERCORN = ["-m", "hypercorn", "-w", "2", "-b", "127.0.0.1:PORT", "asgi:app"]


@pytest.mark.parametrize(
    ("needed", "command", "workers", "says"),
    [
        ("uvicorn", UVICORN, 1, False),
        ("uvicorn", [*UVICORN, "--workers", "2"], 2, False),
        ("uvicorn", [*UVICORN, "--loop", "asyncio"], 1, False),
        ("uvicorn", [*UVICORN, "--loop", "uvloop", "--workers", "2"], 2, True),
        ("uvicorn_worker", [*GUNICORN, "uvicorn_worker.UvicornWorker", "asgi:app"], 2, False),
        ("gunicorn.workers.gasgi", [*GUNICORN, "gunicorn.workers.gasgi.ASGIWorker", "asgi:app"], 2, True),
        ("aiohttp", [*GUNICORN, "aiohttp.GunicornUVLoopWebWorker", "web_app:aiohttp_app()"], 2, True),
        ("hypercorn", HYPERCORN, 2, False),
        ("hypercorn", [*HYPERCORN, "-k", "uvloop"], 2, True),
        ("sanic", ["-m", "sanic", "web_app:sanic_app", "--factory", "-w", "2", "-p", "PORT"], 2, True),
        (
            "aiohttp_devtools",
            [
                "-m",
                "aiohttp_devtools",
                "runserver",
                "-p",
                "PORT",
                "--app-factory",
                "aiohttp_app",
                "web_app.py",
            ],
            1,
            False,
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_each_worker_runs_on_ours_under_run(
    tmp_path: Path, needed: str, command: list[str], workers: int, says: bool
) -> None:
    pytest.importorskip(needed, reason="one of `make integrations`")
    loops, said = served(tmp_path, [*RUN, *command], workers)
    assert loops == {OURS}, said
    assert (LINE in said) == says, said


def test_keep_uvloop_reaches_the_workers(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="one of `make integrations`")
    loops, said = served(tmp_path, [*RUN, "--keep-uvloop", *UVICORN, "--workers", "2"], 2)
    assert loops == {UVLOOP}, said
    assert LINE not in said


@pytest.mark.parametrize("command", [[*RUN, *UVICORN, "--reload"], ["installed.py", "PORT", "reload=True"]])
def test_a_reloaded_worker_runs_on_ours(tmp_path: Path, command: list[str]) -> None:
    pytest.importorskip("uvicorn", reason="one of `make integrations`")
    server = Server(tmp_path, command)
    try:
        assert server.loops(1) == [OURS]
        assert server.answer() == OURS
        with touching(tmp_path / "asgi.py"):
            assert set(server.loops(2)) == {OURS}
        assert server.answer() == OURS
    finally:
        server.kill()


@pytest.mark.parametrize(
    ("options", "workers", "expected"),
    [([], 1, OURS), (["workers=2"], 2, OURS), (["loop=uvloop"], 1, UVLOOP)],
)
def test_uvicorn_run_after_install(tmp_path: Path, options: list[str], workers: int, expected: str) -> None:
    pytest.importorskip("uvicorn", reason="one of `make integrations`")
    loops, said = served(tmp_path, ["installed.py", "PORT", *options], workers)
    assert loops == {expected}, said


def test_gunicorn_s_uvicorn_worker_after_install(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn_worker", reason="one of `make integrations`")
    (tmp_path / "gunicorn.conf.py").write_text("import uringloop\nuringloop.install()\n")
    loops, said = served(tmp_path, [*GUNICORN, "uvicorn_worker.UvicornWorker", "asgi:app"], 2)
    assert loops == {OURS}, said
