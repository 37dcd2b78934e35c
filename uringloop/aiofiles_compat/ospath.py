"""aiofiles.ospath: what a stat tells through the ring, the rest in an executor."""

from __future__ import annotations

import os
import stat
from typing import Any

from uringloop.aiofiles_compat.base import ours, wrap
from uringloop.files import fs

__all__ = [
    "abspath",
    "exists",
    "getatime",
    "getctime",
    "getmtime",
    "getsize",
    "isdir",
    "isfile",
    "islink",
    "ismount",
    "samefile",
    "sameopenfile",
]


async def _size(path: Any) -> int:
    return (await fs.stat(path)).st_size


async def _atime(path: Any) -> float:
    return (await fs.stat(path)).st_atime


async def _mtime(path: Any) -> float:
    return (await fs.stat(path)).st_mtime


async def _ctime(path: Any) -> float:
    return (await fs.stat(path)).st_ctime


async def _is_link(path: Any) -> bool:
    try:
        return stat.S_ISLNK((await fs.lstat(path)).st_mode)
    except (OSError, ValueError):
        return False


async def _same(one: Any, other: Any) -> bool:
    return os.path.samestat(await fs.stat(one), await fs.stat(other))


abspath = wrap(os.path.abspath)
exists = ours(fs.exists)
getatime = ours(_atime)
getctime = ours(_ctime)
getmtime = ours(_mtime)
getsize = ours(_size)
isdir = ours(fs.is_dir)
isfile = ours(fs.is_file)
islink = ours(_is_link)
ismount = wrap(os.path.ismount)
samefile = ours(_same)
sameopenfile = ours(_same)
