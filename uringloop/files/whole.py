"""Files as a whole: read or written in one go, or replaced so that nobody ever sees half of one."""

from __future__ import annotations

import os
import secrets
from typing import Any

from uringloop._core.file_op import close, fsync, openat2, renameat, unlinkat
from uringloop.files.loops import running_loop
from uringloop.files.opening import open_file
from uringloop.files.paths import Path, encoded, folder


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
    """Replace the file by one with this content: whoever opens it finds all of the old or all of the new,
    also after a crash, unless `sync` is false. A str is encoded, UTF-8 unless said otherwise."""
    loop = running_loop()
    if isinstance(data, str):
        data = data.encode(encoding or "utf-8")
    name = os.fsencode(path)
    beside, last = os.path.split(name)
    temporary = os.path.join(beside, b".%s.%s" % (last[:200], secrets.token_hex(8).encode()))
    try:
        async with open_file(temporary, "xb", 0, permissions=permissions) as file:
            await file.write(data)
            if sync:
                await file.fsync()
        await renameat(loop, folder(None), temporary, folder(None), encoded(path), 0, (temporary, path))
    except BaseException:
        await unlinkat(loop, folder(None), temporary, 0, None)
        raise
    if sync:
        fd = await openat2(
            loop,
            folder(None),
            beside or b".",
            os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC,
            0,
            0,
            True,
            (path,),
        )
        try:
            await fsync(loop, fd, False, (path,))
        finally:
            await close(loop, fd)
