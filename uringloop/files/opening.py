"""open_file: opening, with io.open's arguments, checks and errors. What is opened is `byte_file` and `text_file`."""

from __future__ import annotations

import errno
import io
import os
import stat
import warnings
from collections.abc import Callable, Generator
from functools import lru_cache
from types import TracebackType
from typing import Any, NamedTuple

from uringloop._core.file_op import locate_now, open_now, openat2, stat_now
from uringloop.files.byte_file import ByteFile
from uringloop.files.descriptor import Descriptor
from uringloop.files.loops import running_loop
from uringloop.files.mounts import filesystem_kind
from uringloop.files.text_file import TextFile

AT_FDCWD = -100
BUFFER = 131072  # of what is written; what is read ahead starts smaller and grows to as much


class Mode(NamedTuple):
    """What a mode string asks for."""

    name: str  # as io's binary files show it
    flags: int
    reading: bool
    writing: bool
    appending: bool
    text: bool


@lru_cache(maxsize=256)
def parse_mode(mode: str) -> Mode:
    """io.open's own rules and messages."""
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
    if shown == "wb+":
        shown = "rb+"  # as io has it
    return Mode(shown, flags, reading, writing, kind == "a", "b" not in given)


class Opening:
    """What open_file returns: awaited, or entered with `async with`, it is the open file."""

    __slots__ = ("_arguments", "_file")

    def __init__(self, *arguments: Any) -> None:
        self._arguments = arguments
        self._file: Any = None

    def __await__(self) -> Generator[Any, Any, Any]:
        return _open(*self._arguments).__await__()

    async def __aenter__(self) -> Any:
        self._file = file = await _open(*self._arguments)
        return file

    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Any:
        return self._file.__aexit__(kind, error, traceback)


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
) -> Any:
    """Open a file as io.open does: `async with open_file(p) as f` or `f = await open_file(p)`.

    Beyond io's arguments: a relative path is relative to `dir_fd`; a file that is created has `permissions` less the
    umask; `direct` bypasses the page cache (O_DIRECT); `flags` are more of open(2)'s, and `resolve` openat2(2)'s,
    RESOLVE_BENEATH for one. On an event loop of uringloop only.
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
                "line buffering (buffering=1) isn't supported in binary mode, the default buffer size will be used",
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
    where = AT_FDCWD if dir_fd is None else dir_fd
    return Opening(file, mode, asked, how, size, text, closefd, opener, where, permissions, direct, resolve)


async def _open(
    file: Any,
    mode: str,
    asked: Mode,
    how: int,
    size: int,
    text: Any,
    closefd: bool,
    opener: Any,
    where: int,
    permissions: int,
    direct: bool,
    resolve: int,
) -> Any:
    loop = running_loop()
    if opener is not None:
        fd = await loop.run_in_executor(None, opener, file, how)
        if fd < 0:
            raise ValueError(f"opener returned {fd}")
        os.set_inheritable(fd, False)
    elif isinstance(file, int):
        fd = file
    else:
        path = os.fsencode(file)
        if b"\0" in path:
            raise ValueError("embedded null byte")
        fd = None
        if not asked.writing and not resolve:
            fd = open_known(where, path, how)
            if fd is not None and fd < 0:
                raise OSError(-fd, os.strerror(-fd), file)
        if fd is None:
            fd = await openat2(loop, where, path, how, permissions if how & os.O_CREAT else 0, resolve, True, (file,))
    descriptor = None
    try:
        found = stat_now(fd)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), file)
        descriptor = Descriptor(fd, found, file, closefd, filesystem_kind(found.st_dev), direct)
        return await make_file(descriptor, mode, asked, size, text)
    except BaseException:
        if descriptor is None and closefd and not isinstance(file, int):
            os.close(fd)
        raise


async def make_file(descriptor: Descriptor, mode: str, asked: Mode, size: int, text: Any) -> Any:
    """The object for an open descriptor, at its position."""
    position = 0
    if size and asked.reading and asked.writing and not descriptor.seekable:
        raise io.UnsupportedOperation("File or stream is not seekable.")
    if descriptor.seekable and isinstance(descriptor.name, int):
        position = os.lseek(descriptor.fd, 0, os.SEEK_CUR)
    file = ByteFile(descriptor, asked.name, size, asked.reading, asked.writing, asked.appending, position)
    if descriptor.seekable and asked.appending:
        await file.seek(0, os.SEEK_END)
    return file if text is None else TextFile(file, mode, *text)


def open_known(where: int, path: bytes, how: int) -> int | None:
    """Open for reading in the loop's own thread, where all there is to do is in the kernel's memory: names it knows,
    leading to a regular file of a filesystem that asks nobody else. A descriptor, -errno, or None."""
    located = locate_now(where, path, how & os.O_NOFOLLOW)
    if located is None or isinstance(located, int):
        return None  # that it does not exist is the filesystem's to say, when it may be a remote one
    place, device, found = located
    os.close(place)
    if not stat.S_ISREG(found.st_mode) or not filesystem_kind(device):
        return None
    return open_now(where, path, how)
