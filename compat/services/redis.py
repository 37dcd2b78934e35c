"""A Redis server."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator

from compat.services import debian

_PACKAGES = ("redis-server", "redis-tools", "liblzf1", "libjemalloc2")


def _program() -> tuple[str, dict[str, str]] | None:
    installed = shutil.which("redis-server")
    if installed:
        return installed, dict(os.environ)
    folder = debian.unpacked("redis-server", _PACKAGES)
    if folder is None:
        return None
    return str(folder / "usr" / "bin" / "redis-server"), debian.environment(folder)


def missing() -> str | None:
    if _program() is None:
        return "there is no redis-server: on Debian and Ubuntu it is in the package redis-server"
    return None


@contextlib.contextmanager
def running() -> Iterator[dict[str, str]]:
    """REDIS_URL of a server that keeps nothing."""
    found = _program()
    assert found is not None
    program, environment = found
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
        command += ["--appendonly", "no", "--enable-debug-command", "yes"]
        server = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
        )
        try:
            _wait(port)
            yield {"REDIS_URL": f"redis://127.0.0.1:{port}/0"}
        finally:
            server.terminate()
            server.wait()


def _wait(port: int) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
