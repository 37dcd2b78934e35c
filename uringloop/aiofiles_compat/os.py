"""aiofiles.os: what the ring has through it, the rest in an executor."""

from __future__ import annotations

import os

from uringloop.aiofiles_compat import ospath as path
from uringloop.aiofiles_compat.base import ours, wrap
from uringloop.files import fs

__all__ = [
    "access",
    "getcwd",
    "link",
    "listdir",
    "makedirs",
    "mkdir",
    "path",
    "readlink",
    "remove",
    "removedirs",
    "rename",
    "renames",
    "replace",
    "rmdir",
    "scandir",
    "sendfile",
    "stat",
    "statvfs",
    "symlink",
    "unlink",
    "wrap",
]

access = wrap(os.access)
getcwd = wrap(os.getcwd)
link = ours(fs.link)
listdir = ours(fs.listdir)
makedirs = ours(fs.makedirs)
mkdir = ours(fs.mkdir)
readlink = ours(fs.readlink)
remove = ours(fs.remove)
removedirs = wrap(os.removedirs)
rename = ours(fs.rename)
renames = wrap(os.renames)
replace = ours(fs.replace)
rmdir = ours(fs.rmdir)
scandir = wrap(os.scandir)
sendfile = wrap(os.sendfile)
stat = ours(fs.stat)
statvfs = wrap(os.statvfs)
symlink = ours(fs.symlink)
unlink = ours(fs.unlink)
