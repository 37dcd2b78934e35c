"""add_reader and its family: which handle runs when which descriptor is ready. `_core.epoll_set` watches them."""

from __future__ import annotations

import selectors
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from uringloop._core.loop.epoll_set import EpollSet
from uringloop._core.loop.handle import Handle
from uringloop.inspect.operations import Operation

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


class Readers:
    """The registrations of one loop: at most one reader and one writer a descriptor."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._set: EpollSet | None = None  # made when first needed
        self._objects: dict[int, object] = {}  # what was given in, where that was no number

    def add(
        self, fileobj: Any, write: bool, callback: Callable[..., object], args: tuple[Any, ...]
    ) -> Handle:
        """Watch, or change what is run for a descriptor already watched; asyncio's handle of it."""
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
        """Its descriptor; of one closed while it was watched, the number that it had."""
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
        """What the kernel watches, and for which handles."""
        for watched in [] if self._set is None else list(self._set.registrations.values()):
            for kind, handle in (("reader", watched.reader), ("writer", watched.writer)):
                if handle is not None:
                    yield Operation(kind, watched.fd, "in kernel", handle)

    def events(self, fd: int) -> int:
        """What is watched, in the words of `selectors`."""
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
        """The loop is closed and drained: it is to be freed with its last reference."""
        self._set = None
        del self._loop
