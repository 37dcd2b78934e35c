"""copyfile: the content of a file into another, by copy_file_range in an executor, piece by piece, so that
a long copy can be cancelled and on some filesystems copies nothing at all."""

from __future__ import annotations

import errno
import os
import shutil
import stat

from uringloop.files.loops import running_loop
from uringloop.files.opening import open_file
from uringloop.files.paths import Path

PIECE = 64 << 20
# What says that the two filesystems cannot do it, not that something is wrong.
UNABLE = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF, errno.EPERM}


async def copyfile(src: Path, dst: Path, *, follow_symlinks: bool = True) -> Path:
    """As shutil.copyfile: content only."""
    loop = running_loop()
    if not follow_symlinks and await loop.run_in_executor(None, os.path.islink, src):
        await loop.run_in_executor(None, lambda: os.symlink(os.readlink(os.fspath(src)), dst))
        return dst
    async with open_file(src, "rb", 0) as source:
        found = os.fstat(source.fileno())
        if not stat.S_ISREG(found.st_mode) and stat.S_ISFIFO(found.st_mode):
            raise shutil.SpecialFileError(f"`{os.fsdecode(src)}` is a named pipe")
        # Not truncated by opening it: it might be the source.
        async with open_file(dst, "ab", 0) as target:
            if os.path.samestat(found, os.fstat(target.fileno())):
                raise shutil.SameFileError(f"{src!r} and {dst!r} are the same file")
        async with open_file(dst, "wb", 0) as target:
            if not await _by_kernel(source.fileno(), target.fileno()):
                while data := await source.read(1 << 20):
                    await target.write(data)
    return dst


async def _by_kernel(source: int, target: int) -> bool:
    """Whether anything was copied, and then all of it: what says it has no bytes may be one of /proc."""
    loop = running_loop()
    offset = 0
    while True:
        try:
            done = await loop.run_in_executor(
                None,
                lambda at=offset: os.copy_file_range(source, target, PIECE, at, at),  # type: ignore[misc]
            )
        except OSError as error:
            if offset == 0 and error.errno in UNABLE:
                return False
            raise
        if not done:
            return offset > 0
        offset += done
