"""Programs to look at, in processes of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# Serves until it is interrupted, or (not "for-ever") its standard input ends.
SERVER = """
import asyncio, sys

async def answer(reader, writer):
    while line := await reader.readline():
        writer.write(line)

async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def talk():
        while True:
            writer.write(b"x\\n")
            await reader.readline()
            await asyncio.sleep(0.001)

    talking = asyncio.create_task(talk(), name="talks")
    print("ready", *sys.argv[1:], flush=True)
    if "for-ever" in sys.argv:
        await asyncio.Event().wait()
    await asyncio.to_thread(sys.stdin.read)
    talking.cancel()
    writer.close()
    server.close()

asyncio.run(main())
"""


@pytest.fixture
def server(tmp_path: Path) -> Path:
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    return path


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """XDG_RUNTIME_DIR: with a short name, as addresses of Unix sockets must have."""
    folder = Path(tempfile.mkdtemp(prefix="ul"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def start(runtime: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `uringloop` with arguments, its streams pipes; what still runs in the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def begin(*arguments: object, **environment: str) -> subprocess.Popen[str]:
        started.append(
            subprocess.Popen(
                [sys.executable, "-m", "uringloop", *map(str, arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, **environment},
            )
        )
        return started[-1]

    yield begin
    for child in started:
        child.kill()
        child.communicate()


@pytest.fixture
def serving(start: Callable[..., Any], server: Path) -> subprocess.Popen[str]:
    """The server, with an inspector."""
    child: subprocess.Popen[str] = start("run", server, URINGLOOP_INSPECT="1")
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child
