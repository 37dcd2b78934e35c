"""fs: asynchronous operations on paths. They use io_uring where it has the operation, otherwise a worker thread;
docs/files.md has the list.

Each takes the arguments of its namesake in `os`, `shutil` or `pathlib`, and raises the same errors. None of them blocks
the loop.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat as stat_module
from contextlib import suppress
from typing import Any

from uringloop._core.awaitables.file_op import (
    close,
    ftruncate,
    linkat,
    mkdirat,
    offers_ftruncate,
    openat2,
    renameat,
    stat_buffer,
    stat_now,
    stat_result,
    statx_into,
    symlinkat,
    unlinkat,
)
from uringloop.files.copying import copyfile
from uringloop.files.loops import running_loop
from uringloop.files.mounts import filesystem_kind
from uringloop.files.paths import Path, encoded, folder
from uringloop.files.sequence import run_apart, to_the_end
from uringloop.files.threads import on_path
from uringloop.files.walking import listdir, scandir, walk
from uringloop.files.whole import atomic_write, read_bytes, read_text, write_bytes, write_text

AT_SYMLINK_NOFOLLOW = 0x100
AT_REMOVEDIR = 0x200
AT_SYMLINK_FOLLOW = 0x400
AT_EMPTY_PATH = 0x1000

__all__ = [
    "access",
    "atomic_write",
    "chmod",
    "copyfile",
    "exists",
    "is_dir",
    "is_file",
    "link",
    "listdir",
    "lstat",
    "makedirs",
    "mkdir",
    "read_bytes",
    "read_text",
    "readlink",
    "remove",
    "rename",
    "replace",
    "rmdir",
    "rmtree",
    "scandir",
    "stat",
    "symlink",
    "truncate",
    "unlink",
    "utime",
    "walk",
    "write_bytes",
    "write_text",
]


# Looking


async def stat(
    path: Path | int, *, dir_fd: int | None = None, follow_symlinks: bool = True
) -> os.stat_result:
    loop = running_loop()
    found = stat_buffer()
    if isinstance(path, int):
        await statx_into(loop, path, b"", AT_EMPTY_PATH, found, (path,))
        return stat_result(found)
    name, where = encoded(path), folder(dir_fd)
    known = stat_now(where, name, follow_symlinks)
    if known is not None and filesystem_kind(known[0]):
        return known[1]
    flags = 0 if follow_symlinks else AT_SYMLINK_NOFOLLOW
    await statx_into(loop, where, name, flags, found, (path,))
    return stat_result(found)


async def lstat(path: Path, *, dir_fd: int | None = None) -> os.stat_result:
    return await stat(path, dir_fd=dir_fd, follow_symlinks=False)


async def _mode(path: Path | int) -> int:
    """The file's mode; 0 if the file doesn't exist or can't be reached."""
    try:
        return (await stat(path)).st_mode
    except (OSError, ValueError):
        return 0


async def exists(path: Path | int) -> bool:
    return await _mode(path) != 0


async def is_file(path: Path | int) -> bool:
    return stat_module.S_ISREG(await _mode(path))


async def is_dir(path: Path | int) -> bool:
    return stat_module.S_ISDIR(await _mode(path))


async def access(path: Path, mode: int, **options: Any) -> bool:
    return bool(await on_path(os.access, path, mode, **options))


async def readlink(path: Path, *, dir_fd: int | None = None) -> Any:
    return await on_path(os.readlink, path, dir_fd=dir_fd)


# Making and removing


async def mkdir(path: Path, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
    await mkdirat(running_loop(), folder(dir_fd), encoded(path), mode, (path,))


async def makedirs(name: Path, mode: int = 0o777, exist_ok: bool = False) -> None:
    path = os.fspath(name)
    head, tail = os.path.split(path)
    if not tail:
        head, tail = os.path.split(head)
    if head and tail and not await exists(head):
        with suppress(FileExistsError):  # another task or process was faster
            await makedirs(head, exist_ok=exist_ok)
        if tail in (os.curdir, os.fsencode(os.curdir)):
            return
    try:
        await mkdir(path, mode)
    except OSError:
        if not exist_ok or not await is_dir(path):
            raise


async def unlink(path: Path, *, dir_fd: int | None = None) -> None:
    await unlinkat(running_loop(), folder(dir_fd), encoded(path), 0, (path,))


remove = unlink


async def rmdir(path: Path, *, dir_fd: int | None = None) -> None:
    await unlinkat(running_loop(), folder(dir_fd), encoded(path), AT_REMOVEDIR, (path,))


async def rmtree(path: Path, ignore_errors: bool = False, **options: Any) -> None:
    await on_path(shutil.rmtree, path, ignore_errors, **options)


# Names


async def rename(
    src: Path, dst: Path, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
) -> None:
    loop = running_loop()
    source, target = encoded(src), encoded(dst)
    await renameat(loop, folder(src_dir_fd), source, folder(dst_dir_fd), target, 0, (src, dst))


replace = rename


async def link(
    src: Path,
    dst: Path,
    *,
    src_dir_fd: int | None = None,
    dst_dir_fd: int | None = None,
    follow_symlinks: bool = True,
) -> None:
    # As os.link: without a folder's descriptor it uses plain link(2), which doesn't follow symlinks.
    flags = AT_SYMLINK_FOLLOW if follow_symlinks and (src_dir_fd, dst_dir_fd) != (None, None) else 0
    loop = running_loop()
    source, target = encoded(src), encoded(dst)
    await linkat(loop, folder(src_dir_fd), source, folder(dst_dir_fd), target, flags, (src, dst))


async def symlink(
    src: Path, dst: Path, target_is_directory: bool = False, *, dir_fd: int | None = None
) -> None:
    await symlinkat(running_loop(), encoded(src), folder(dir_fd), encoded(dst), (src, dst))


# What is known about a file


async def truncate(path: Path | int, length: int) -> None:
    loop = running_loop()
    if length < 0:
        raise OSError(
            errno.EINVAL, os.strerror(errno.EINVAL), path if isinstance(path, int) else os.fspath(path)
        )
    if not offers_ftruncate(loop):
        await on_path(os.truncate, path, length)
    else:
        await run_apart(_truncate(path, length))


async def _truncate(path: Path | int, length: int) -> None:
    loop = running_loop()
    names: tuple[Path, ...] = () if isinstance(path, int) else (path,)
    fd = os.dup(path) if isinstance(path, int) else await _opened_for_truncating(path)
    try:
        await to_the_end(ftruncate(loop, fd, length, names))
    finally:
        await close(loop, fd)


async def _opened_for_truncating(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY  # don't wait for a FIFO's reader
    try:
        fd: int = await openat2(running_loop(), folder(None), encoded(path), flags, 0, 0, True, (path,))
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), os.fspath(path)) from None  # as truncate(2)
    return fd


async def utime(path: Path | int, times: tuple[float, float] | None = None, **options: Any) -> None:
    await on_path(os.utime, path, times, **options)


async def chmod(path: Path | int, mode: int, **options: Any) -> None:
    await on_path(os.chmod, path, mode, **options)
