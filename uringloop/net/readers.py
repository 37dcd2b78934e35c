"""add_reader and its family: who watches which descriptor. The watching itself is `_core.poll.PollOp`."""

from __future__ import annotations

import errno
import os
import select
import socket
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from uringloop._core.handle import Handle
from uringloop._core.io_refs import watch
from uringloop._core.poll import PollOp

if TYPE_CHECKING:
    from uringloop.loop import EventLoop


def descriptor(fileobj: Any) -> int:
    """The number behind a descriptor, socket or file object, with the errors of `selectors`."""
    if isinstance(fileobj, int):
        fd = fileobj
    else:
        try:
            fd = int(fileobj.fileno())
        except (AttributeError, TypeError, ValueError):
            raise ValueError(f"Invalid file object: {fileobj!r}") from None
    if fd < 0:
        raise ValueError(f"Invalid file descriptor: {fd}")
    return fd


def check_pollable(fd: int) -> None:
    """What epoll_ctl would say of the descriptor: EBADF, or EPERM for what is always ready (a regular file)."""
    kind = os.fstat(fd).st_mode
    if stat.S_ISSOCK(kind) or stat.S_ISFIFO(kind):
        return
    if stat.S_ISREG(kind) or stat.S_ISDIR(kind):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
    try:
        probe = select.epoll()
    except OSError:
        return  # no descriptor left to ask with; most can be watched
    with probe:  # devices, eventfds, pidfds: only the kernel knows
        probe.register(fd, select.EPOLLIN)


class Readers:
    """The registrations of one loop: at most one reader and one writer a descriptor."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._polls: dict[tuple[int, bool], PollOp] = {}
        self._objects: dict[int, object] = {}  # what was given in, where that was no number

    def add(
        self, fileobj: Any, write: bool, callback: Callable[..., object], args: tuple[Any, ...]
    ) -> Handle:
        """Watch, or change what is run for a descriptor already watched; asyncio's handle of it."""
        fd = descriptor(fileobj)
        check_pollable(fd)
        handle = self._loop._make_handle(callback, args)
        # A new poll each time, not a new callback for the old one: the descriptor may have been closed and
        # its number given to another file meanwhile, and a poll watches the file.
        self.remove(fd, write)
        poll = self._polls[fd, write] = PollOp(self._loop, fd, write, handle)
        if isinstance(fileobj, socket.socket):
            watch(poll, fileobj)
        poll.arm()
        if fd != fileobj:
            self._objects[fd] = fileobj
        return handle

    def find(self, fileobj: Any) -> int:
        """Its descriptor; of one closed while it was watched, the number that it had."""
        try:
            return descriptor(fileobj)
        except ValueError:
            for fd, watched in self._objects.items():
                if watched is fileobj:
                    return fd
            raise

    def remove(self, fd: int, write: bool) -> bool:
        poll = self._polls.pop((fd, write), None)
        if poll is None:
            return False
        if (fd, not write) not in self._polls:
            self._objects.pop(fd, None)
        handle = poll.handle
        poll.disarm()
        if handle is not None:
            handle.cancel()
        return True

    def clear(self) -> None:
        for fd, write in list(self._polls):
            self.remove(fd, write)

    def let_go(self) -> None:
        """The loop is closed: it is to be free as soon as nobody else holds it."""
        del self._loop
