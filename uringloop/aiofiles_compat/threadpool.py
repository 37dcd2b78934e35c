"""aiofiles.threadpool's names, though no thread is involved: open, wrap and the standard streams."""

from __future__ import annotations

import io
import sys
from typing import Any

from uringloop.aiofiles_compat.base import AiofilesContextManager, RingFile, ThreadFile
from uringloop.files import open_file

sync_open = io.open

__all__ = (
    "open",
    "stderr",
    "stderr_bytes",
    "stdin",
    "stdin_bytes",
    "stdout",
    "stdout_bytes",
    "wrap",
)


def open(
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Any = None,
    *,
    loop: Any = None,
    executor: Any = None,
) -> AiofilesContextManager:
    return AiofilesContextManager(_open(file, mode, buffering, encoding, errors, newline, closefd, opener))


async def _open(*arguments: Any) -> RingFile:
    return RingFile(await open_file(*arguments))


def wrap(file: Any, *, loop: Any = None, executor: Any = None) -> ThreadFile:
    """A file object that is open already, its methods called in an executor."""
    if not isinstance(file, (io.TextIOBase, io.BufferedIOBase, io.FileIO)):
        raise TypeError(f"Unsupported io type: {file}.")
    return ThreadFile(file, loop=loop, executor=executor)


stdin = ThreadFile(None, lambda: sys.stdin)
stdout = ThreadFile(None, lambda: sys.stdout)
stderr = ThreadFile(None, lambda: sys.stderr)
stdin_bytes = ThreadFile(None, lambda: sys.stdin.buffer)
stdout_bytes = ThreadFile(None, lambda: sys.stdout.buffer)
stderr_bytes = ThreadFile(None, lambda: sys.stderr.buffer)
