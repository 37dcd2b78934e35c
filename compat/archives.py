"""Fetches source archives through pip, for the test folders that wheels don't have."""

from __future__ import annotations

import fcntl
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from compat.pip import pip
from compat.places import BUILD

FOLDER = BUILD / "archives"


def _extract(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extractall(folder, filter="data")
        else:
            tar.extractall(folder)


def fetch(name: str, version: str) -> Path:
    """The folder of the unpacked source archive; fetched once, for every Python."""
    target = FOLDER / f"{name}-{version}"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.is_dir():
            return target
        with tempfile.TemporaryDirectory(dir=FOLDER) as work:
            print(f"fetching the source archive of {name} {version}", file=sys.stderr)
            pip(
                sys.executable,
                "download",
                "--no-deps",
                "--no-binary",
                name,
                "--dest",
                work,
                f"{name}=={version}",
            )
            archive = next(Path(work).glob("*.tar.gz"))
            _extract(archive, Path(work) / "unpacked")
            shutil.move(next((Path(work) / "unpacked").iterdir()), target)
    return target
