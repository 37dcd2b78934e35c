"""add_reader and its family: the handle to run when a descriptor is ready. `_core.loop.epoll_set` watches the
descriptors."""

from __future__ import annotations

import selectors
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from uringloop._core.loop.epoll_set import EpollSet
from uringloop._core.loop.handle import Handle

if TYPE_CHECKING:
    from uringloop.inspect.operations import Operation
    from uringloop.loop import EventLoop


def descriptor(fileobj: Any) -> int:
    """Return the descriptor number of an int, socket or file object; raises the same errors as `selectors`."""
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


class Readers:
    """The registrations of one loop: at most one reader and one writer per descriptor."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._set: EpollSet | None = None  # made on first use
        self._objects: dict[int, object] = {}  # the caller's file objects, where the caller gave no number

    def add(
        self, fileobj: Any, write: bool, callback: Callable[..., object], args: tuple[Any, ...]
    ) -> Handle:
        """Watch a descriptor, or replace the callback of one already watched; return the handle, as asyncio does."""
        fd = descriptor(fileobj)
        if self._set is None:
            self._set = EpollSet(self._loop)
        handle = self._loop._make_handle(callback, args)
        replaced = self._set.add(fd, write, handle)
        if fd != fileobj:
            self._objects[fd] = fileobj
        if replaced is not None:
            replaced.cancel()
        return handle

    def find(self, fileobj: Any) -> int:
        """Return the descriptor of a file object; if it was closed while watched, the number that it had."""
        try:
            return descriptor(fileobj)
        except ValueError:
            for fd, watched in self._objects.items():
                if watched is fileobj:
                    return fd
            raise

    def remove(self, fd: int, write: bool) -> bool:
        handle = None if self._set is None else self._set.remove(fd, write)
        if handle is None or self._set is None:
            return False
        if fd not in self._set.registrations:
            self._objects.pop(fd, None)
        handle.cancel()
        return True

    def operations(self) -> Iterator[Operation]:
        """The watched descriptors, each with its handle."""
        from uringloop.inspect.operations import Operation

        for watched in [] if self._set is None else list(self._set.registrations.values()):
            for kind, handle in (("reader", watched.reader), ("writer", watched.writer)):
                if handle is not None:
                    yield Operation(kind, watched.fd, "in kernel", handle)

    def events(self, fd: int) -> int:
        """The events watched for a descriptor, as constants of `selectors`."""
        watched = None if self._set is None else self._set.registrations.get(fd)
        if watched is None:
            return 0
        reading = selectors.EVENT_READ if watched.reader is not None else 0
        return reading | (selectors.EVENT_WRITE if watched.writer is not None else 0)

    def clear(self) -> None:
        for fd in [] if self._set is None else list(self._set.registrations):
            self.remove(fd, False)
            self.remove(fd, True)

    def let_go(self) -> None:
        """Drop the reference to the closed and drained loop, so that no cycle keeps the loop alive."""
        self._set = None
        del self._loop
