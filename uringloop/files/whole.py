"""Whole files: reading or writing a file in one call, and replacing its content atomically."""

from __future__ import annotations

import os
import secrets
from typing import Any

from uringloop._core.awaitables.file_op import close, fsync, openat2, renameat, uncancelled, unlinkat
from uringloop.files.loops import running_loop
from uringloop.files.opening import open_file
from uringloop.files.paths import AT_FDCWD, Path, encoded
from uringloop.files.sequence import run_apart, to_the_end

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


async def read_bytes(path: Path) -> bytes:
    async with open_file(path, "rb") as file:
        return await file.read()  # type: ignore[no-any-return]


async def read_text(
    path: Path, encoding: str | None = None, errors: str | None = None, newline: str | None = None
) -> str:
    async with open_file(path, "r", -1, encoding, errors, newline) as file:
        return await file.read()  # type: ignore[no-any-return]


async def write_bytes(path: Path, data: Any) -> int:
    async with open_file(path, "wb") as file:
        return await file.write(data)  # type: ignore[no-any-return]


async def write_text(
    path: Path,
    data: str,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
) -> int:
    if not isinstance(data, str):
        raise TypeError(f"data must be str, not {type(data).__name__}")
    async with open_file(path, "w", -1, encoding, errors, newline) as file:
        return await file.write(data)  # type: ignore[no-any-return]


async def atomic_write(
    path: Path,
    data: Any,
    *,
    encoding: str | None = None,
    permissions: int = 0o666,
    sync: bool = True,
) -> None:
    """Replace a file's content atomically: a reader sees either all of the old content or all of the new.

    That also holds after a crash, unless `sync` is false. A str is encoded with `encoding`, by default UTF-8."""
    if isinstance(data, str):
        data = data.encode(encoding or "utf-8")
    await run_apart(_replace(path, data, permissions, sync))


async def _replace(path: Path, data: Any, permissions: int, sync: bool) -> None:
    loop = running_loop()
    name = encoded(path)
    beside, last = os.path.split(name)
    temporary = os.path.join(beside, b".%s.%s" % (last[:200], secrets.token_hex(8).encode()))
    try:
        fd = await to_the_end(openat2(loop, AT_FDCWD, temporary, NEW, permissions, 0, True, (temporary,)))
        async with open_file(fd, "wb", 0) as file:
            await file.write(data)
            if sync:
                await file.fsync()
        await to_the_end(renameat(loop, AT_FDCWD, temporary, AT_FDCWD, name, 0, (temporary, path)))
    except BaseException:
        await to_the_end(uncancelled(unlinkat(loop, AT_FDCWD, temporary, 0, None)))
        raise
    if sync:
        fd = await openat2(loop, AT_FDCWD, beside or b".", FOLDER, 0, 0, True, (path,))
        try:
            await to_the_end(fsync(loop, fd, False, (path,)))
        finally:
            await close(loop, fd)
