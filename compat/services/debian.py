"""Finds programs: on the path, or unpacked from Debian packages into build/, without installing anything."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from compat.places import BUILD


def _release() -> str:
    lines = (
        Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
        if Path("/etc/os-release").exists()
        else []
    )
    return next(
        (line.partition("=")[2].strip('"') for line in lines if line.startswith("VERSION_CODENAME=")),
        "unknown",
    )


def environment(folder: Path) -> dict[str, str]:
    """What unpacked programs need to find the libraries unpacked with them."""
    libraries = [str(path) for path in (folder / "usr" / "lib").glob("*-linux-gnu*")]
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(libraries)}


def unpacked(program: str, packages: tuple[str, ...]) -> Path | None:
    """The folder with the unpacked packages, made when it is not there; None where apt can't fetch them."""
    folder = BUILD / f"debian-{_release()}-{program}"
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        return None
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent) as work:
                fetch = subprocess.run(
                    ["apt-get", "-qq", "download", *packages], cwd=work, capture_output=True
                )
                if fetch.returncode:
                    return None
                for archive in Path(work).glob("*.deb"):
                    subprocess.run(["dpkg", "-x", archive, Path(work) / "root"], check=True)
                shutil.move(Path(work) / "root", folder)
    return folder
