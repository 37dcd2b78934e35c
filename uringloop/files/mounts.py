"""The kind of filesystem behind a device number: whether access to it may hang. Reads only /proc, and never asks a
filesystem."""

from __future__ import annotations

import os
import time

MEMORY = {"tmpfs", "ramfs", "hugetlbfs"}
# Filesystems whose open and stat ask no server and no other process. An overlay may lie on any filesystem, so it's not
# among them.
LOCAL = {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "zfs", "squashfs", "erofs"} | MEMORY
KEEP_SECONDS = 10.0  # after a while, a device number may belong to another filesystem

_kinds: dict[int, str] = {}
_read_at = -KEEP_SECONDS


def filesystem_kind(device: int) -> str:
    """Return "memory", "local", or "" for a filesystem that may hang or is unknown."""
    global _read_at
    now = time.monotonic()
    if now - _read_at > KEEP_SECONDS:
        _kinds.clear()
        _kinds.update(read_mounts())
        _read_at = now
    return _kinds.get(device, "")


def read_mounts() -> dict[int, str]:
    """The kind of each device in /proc/self/mountinfo; empty if there is no /proc."""
    found: dict[int, str] = {}
    try:
        fd = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return found
    with open(fd, encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            before, _, after = line.partition(" - ")
            major, minor = before.split()[2].split(":")
            kind = after.split(" ", 1)[0]
            if kind in LOCAL:
                found[os.makedev(int(major), int(minor))] = "memory" if kind in MEMORY else "local"
    return found
