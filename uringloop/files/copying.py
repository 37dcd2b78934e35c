"""copyfile: a copy of a file's content, by copy_file_range in a worker thread. It copies in pieces, so that a long copy
can be cancelled. On some filesystems the kernel shares the blocks, and copies no data."""

from __future__ import annotations

import errno
import os
import shutil
import stat

from uringloop.files.opening import open_file
from uringloop.files.paths import Path
from uringloop.files.threads import in_thread

PIECE = 64 << 20
# Errors that mean the two filesystems don't support copy_file_range, so the content has to be read and written.
UNABLE = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF, errno.EPERM}


async def copyfile(src: Path, dst: Path, *, follow_symlinks: bool = True) -> Path:
    """Copy a file's content only, as shutil.copyfile does."""
    if await in_thread(_looked_at, src, dst, follow_symlinks):
        return dst
    async with open_file(src, "rb", 0) as source, open_file(dst, "wb", 0) as target:
        if not await _by_kernel(source.fileno(), target.fileno()):
            while data := await source.read(1 << 20):
                await target.write(data)
    return dst


def _looked_at(src: Path, dst: Path, follow_symlinks: bool) -> bool:
    """In a worker: make shutil's own checks. If the source is a link and not to be followed, copy the link, and return
    True: nothing is left to do."""
    both = (src, dst)
    found = [_stat(path) for path in both]
    if found[0] is not None and found[1] is not None and os.path.samestat(found[0], found[1]):
        raise shutil.SameFileError(f"{src!r} and {dst!r} are the same file")
    for path, one in zip(both, found, strict=True):
        if one is not None and stat.S_ISFIFO(one.st_mode):
            raise shutil.SpecialFileError(f"`{os.fsdecode(path)}` is a named pipe")
    if follow_symlinks or not os.path.islink(src):
        return False
    os.symlink(os.readlink(os.fspath(src)), dst)
    return True


def _stat(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None  # opening the file will raise the error


async def _by_kernel(source: int, target: int) -> bool:
    """Copy the content in the kernel; return False if nothing was copied. A file that seems to be empty may be one of
    /proc, which has to be read."""
    offset = 0
    while True:
        try:
            done = await in_thread(_piece, offset, fds=(source, target))
        except OSError as error:
            if offset == 0 and error.errno in UNABLE:
                return False
            raise
        if not done:
            return offset > 0
        offset += done


def _piece(source: int, target: int, offset: int) -> int:
    return os.copy_file_range(source, target, PIECE, offset, offset)
