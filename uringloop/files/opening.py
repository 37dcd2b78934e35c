"""open_file: opens a file with io.open's arguments, checks and errors; returns a ByteFile or a TextFile."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Callable, Generator
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, overload

from uringloop._core.awaitables.file_op import openat2
from uringloop.files.byte_file import ByteFile
from uringloop.files.descriptor import Descriptor, open_known
from uringloop.files.loops import running_loop
from uringloop.files.paths import encoded, folder
from uringloop.files.text_file import TextFile
from uringloop.files.threads import in_thread
from uringloop.inspect.creation import creation_stack

if TYPE_CHECKING:
    from _typeshed import OpenBinaryMode, OpenTextMode

Opened = TypeVar("Opened")

BUFFER = 131072  # the write buffer; the read-ahead starts smaller and grows to this size


class Mode(NamedTuple):
    """A parsed mode string."""

    name: str  # as io's binary files show it
    flags: int
    reading: bool
    writing: bool
    appending: bool
    text: bool


class Order(NamedTuple):
    """The checked arguments of open_file."""

    file: Any
    mode: str
    asked: Mode
    how: int
    size: int
    text: tuple[str | None, str | None, str | None, bool] | None
    closefd: bool
    opener: Callable[[Any, int], int] | None
    where: int
    permissions: int
    direct: bool
    resolve: int


@lru_cache(maxsize=256)
def parse_mode(mode: str) -> Mode:
    """Parse a mode string by io.open's rules, with io.open's messages."""
    given = set(mode)
    if given - set("axrwb+t") or len(mode) > len(given):
        raise ValueError(f"invalid mode: {mode!r}")
    if "t" in given and "b" in given:
        raise ValueError("can't have text and binary mode at once")
    kinds = given & set("axrw")
    if len(kinds) != 1:
        raise ValueError("must have exactly one of create/read/write/append mode")
    kind, updating = kinds.pop(), "+" in given
    reading, writing = kind == "r" or updating, kind != "r" or updating
    flags = os.O_CLOEXEC | (os.O_RDWR if reading and writing else os.O_WRONLY if writing else os.O_RDONLY)
    flags |= {
        "r": 0,
        "w": os.O_CREAT | os.O_TRUNC,
        "a": os.O_CREAT | os.O_APPEND,
        "x": os.O_CREAT | os.O_EXCL,
    }[kind]
    shown = {"r": "rb", "w": "wb", "a": "ab", "x": "xb"}[kind] + ("+" if updating else "")
    if shown == "wb+" and sys.version_info < (3, 15):
        shown = "rb+"  # as io had it
    return Mode(shown, flags, reading, writing, kind == "a", "b" not in given)


class Opening(Generic[Opened]):
    """What open_file returns. Awaiting it opens the file and returns it; `async with` opens it and closes it."""

    __slots__ = ("_file", "_order")

    def __init__(self, order: Order) -> None:
        self._order = order
        self._file: Any = None

    def __await__(self) -> Generator[Any, Any, Opened]:
        return open_order(self._order).__await__()

    async def __aenter__(self) -> Opened:
        self._file = file = open_at_once(self._order) or await open_order(self._order)
        return file  # type: ignore[no-any-return]

    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Any:
        return self._file.__aexit__(kind, error, traceback)


@overload
def open_file(
    file: int | str | bytes | os.PathLike[Any],
    mode: OpenTextMode = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Callable[[Any, int], int] | None = None,
    *,
    dir_fd: int | None = None,
    permissions: int = 0o666,
    direct: bool = False,
    flags: int = 0,
    resolve: int = 0,
) -> Opening[TextFile]: ...


@overload
def open_file(
    file: int | str | bytes | os.PathLike[Any],
    mode: OpenBinaryMode,
    buffering: int = -1,
    encoding: None = None,
    errors: None = None,
    newline: None = None,
    closefd: bool = True,
    opener: Callable[[Any, int], int] | None = None,
    *,
    dir_fd: int | None = None,
    permissions: int = 0o666,
    direct: bool = False,
    flags: int = 0,
    resolve: int = 0,
) -> Opening[ByteFile]: ...


@overload
def open_file(
    file: int | str | bytes | os.PathLike[Any],
    mode: str,
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Callable[[Any, int], int] | None = None,
    *,
    dir_fd: int | None = None,
    permissions: int = 0o666,
    direct: bool = False,
    flags: int = 0,
    resolve: int = 0,
) -> Opening[Any]: ...


def open_file(
    file: int | str | bytes | os.PathLike[Any],
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Callable[[Any, int], int] | None = None,
    *,
    dir_fd: int | None = None,
    permissions: int = 0o666,
    direct: bool = False,
    flags: int = 0,
    resolve: int = 0,
) -> Opening[Any]:
    """Open a file as io.open does: `async with open_file(p) as f` or `f = await open_file(p)`.

    Arguments beyond io.open's: `dir_fd` is the folder that a relative path starts from; `permissions`, less the umask,
    are those of a new file; `direct` bypasses the page cache (O_DIRECT); `flags` are additional flags of open(2), and
    `resolve` those of openat2(2), such as RESOLVE_BENEATH. Works only on an event loop of uringloop.
    """
    if not isinstance(mode, str):
        raise TypeError(f"open_file() argument 'mode' must be str, not {type(mode).__name__}")
    asked = parse_mode(mode)
    if asked.text:
        if buffering == 0:
            raise ValueError("can't have unbuffered text I/O")
        text = (encoding, errors, newline, buffering == 1)
        TextFile.check(encoding, errors, newline)
    else:
        for name, value in (("encoding", encoding), ("errors", errors), ("newline", newline)):
            if value is not None:
                kind = "an" if name[0] == "e" else "a"
                raise ValueError(f"binary mode doesn't take {kind} {name} argument")
        if buffering == 1:
            warnings.warn(
                "line buffering (buffering=1) isn't supported in binary mode, "
                "the default buffer size will be used",
                RuntimeWarning,
                stacklevel=2,
            )
        text = None
    if not isinstance(file, int):
        file = os.fspath(file)
        if not closefd:
            raise ValueError("Cannot use closefd=False with file name")
    elif file < 0:
        raise ValueError("negative file descriptor")
    how = asked.flags | flags | (os.O_DIRECT if direct else 0)
    size = 0 if buffering == 0 else buffering if buffering > 1 else BUFFER
    where = folder(dir_fd)
    return Opening(
        Order(file, mode, asked, how, size, text, closefd, opener, where, permissions, direct, resolve)
    )


def open_at_once(order: Order) -> Any:
    """Open the file without waiting and return it; None if that is not possible."""
    file, asked = order.file, order.asked
    if asked.writing or order.opener is not None or order.resolve or isinstance(file, int):
        return None
    loop = running_loop()
    fd = open_known(order.where, encoded(file), order.how)
    if fd is None:
        return None
    opened = ByteFile(loop, described(loop, fd, order), asked.name, order.size, True, False, False, 0)
    return opened if order.text is None else TextFile(opened, order.mode, *order.text)


async def open_order(order: Order) -> Any:
    opened = open_at_once(order)
    if opened is not None:
        return opened
    loop = running_loop()
    file, asked, how = order.file, order.asked, order.how
    if order.opener is not None:
        fd = await in_thread(opened_by, order.opener, file, how, lost=os.close)
    elif isinstance(file, int):
        fd = file
    else:
        permissions = order.permissions if how & os.O_CREAT else 0
        fd = await openat2(loop, order.where, encoded(file), how, permissions, order.resolve, True, (file,))
    descriptor = described(loop, fd, order)
    if order.size and asked.reading and asked.writing and not descriptor.seekable:
        raise io.UnsupportedOperation("File or stream is not seekable.")
    position = os.lseek(fd, 0, os.SEEK_CUR) if descriptor.seekable and isinstance(file, int) else 0
    opened = ByteFile(
        loop, descriptor, asked.name, order.size, asked.reading, asked.writing, asked.appending, position
    )
    if descriptor.seekable and asked.appending:
        await opened.seek(0, os.SEEK_END)
    return opened if order.text is None else TextFile(opened, order.mode, *order.text)


def opened_by(opener: Callable[[Any, int], int], file: Any, flags: int) -> int:
    """Call the opener, in a worker."""
    fd = opener(file, flags)
    if fd < 0:
        raise ValueError(f"opener returned {fd}")
    os.set_inheritable(fd, False)
    return fd


def described(loop: Any, fd: int, order: Order) -> Descriptor:
    """Make the Descriptor, which owns the number from now on. If that fails, close a number that we have opened."""
    try:
        descriptor = Descriptor(fd, order.file, order.closefd, order.direct)
    except BaseException:
        if not isinstance(order.file, int):
            os.close(fd)
        raise
    descriptor.made_at = creation_stack(loop)  # if that fails, the descriptor closes its number by itself
    return descriptor
