"""Paths in the form that the kernel takes: bytes, relative to a folder's descriptor."""

from __future__ import annotations

import os
from typing import Any

Path = str | bytes | os.PathLike[Any]

AT_FDCWD = -100


def encoded(path: Path) -> bytes:
    found = os.fsencode(path)
    if b"\0" in found:
        raise ValueError("embedded null byte")
    return found


def folder(dir_fd: int | None) -> int:
    return AT_FDCWD if dir_fd is None else dir_fd
