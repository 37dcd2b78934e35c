"""A PostgreSQL server."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def _folder() -> Path | None:
    """Where the server's programs are: Debian keeps them off the path."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    folders = [folder for folder in Path("/usr/lib/postgresql").glob("*/bin") if (folder / "initdb").exists()]
    return max(folders, key=lambda folder: int(folder.parent.name), default=None)


def missing() -> str | None:
    if _folder() is None:
        return "there is no PostgreSQL server: on Debian and Ubuntu it is in the package postgresql"
    return None


def _account() -> dict[str, Any]:
    """The server refuses to run as root: use the account that its package made."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("postgres")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextlib.contextmanager
def running() -> Iterator[dict[str, str]]:
    """PGHOST and friends of a server with an empty database, which keeps nothing."""
    programs = _folder()
    assert programs is not None
    account = _account()
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        if account:
            os.chown(folder, account["user"], account["group"])
        data = Path(folder) / "data"
        quiet: dict[str, Any] = {
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.STDOUT,
            "cwd": folder,
            **account,
        }
        initdb = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"]
        subprocess.run(initdb, check=True, **quiet)
        options = (
            f"-c listen_addresses=127.0.0.1 -c port=54399 -c unix_socket_directories={folder} -c fsync=off"
        )
        options += " -c max_connections=200"
        control = [programs / "pg_ctl", "-D", data, "-w"]
        subprocess.run([*control, "-o", options, "start"], check=True, **quiet)
        try:
            yield {"PGHOST": folder, "PGPORT": "54399", "PGUSER": "postgres", "PGDATABASE": "postgres"}
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], check=False, **quiet)
