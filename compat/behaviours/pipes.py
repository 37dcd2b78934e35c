"""connect_read_pipe and connect_write_pipe."""

from __future__ import annotations

import asyncio
import os
import pty
import socket
import tempfile
import tty
from pathlib import Path
from typing import Any

from compat.behaviours import check
from compat.behaviours.helpers import HalfOpen, Recorder, raises_async, soon, until

PIPES = "connect_read_pipe / connect_write_pipe, peer close -> connection_lost"
SPECIAL = "pty/TTY as pipe; regular file -> ValueError"


async def _read_pipe(fd: int, kind: type[Recorder] = Recorder) -> tuple[Any, Any]:
    return await soon(asyncio.get_running_loop().connect_read_pipe(kind, os.fdopen(fd, "rb", 0)))


async def _write_pipe(fd: int) -> tuple[Any, Any]:
    return await soon(asyncio.get_running_loop().connect_write_pipe(Recorder, os.fdopen(fd, "wb", 0)))


@check(PIPES)
async def bytes_go_through_a_pipe() -> None:
    message = os.urandom(1_000_000)
    read, write = os.pipe()
    reader, read_protocol = await _read_pipe(read)
    writer, write_protocol = await _write_pipe(write)
    assert isinstance(reader, asyncio.ReadTransport) and isinstance(writer, asyncio.WriteTransport)
    assert reader.get_extra_info("pipe").fileno() == read
    writer.write(message)
    assert writer.get_write_buffer_size() > 0
    writer.write(bytearray(b"tail"))
    writer.writelines([b"a", b"b"])
    assert await read_protocol.received(len(message) + 6) == message + b"tailab"
    assert writer.can_write_eof()
    writer.write_eof()
    assert await soon(read_protocol.lost) is None
    assert await soon(write_protocol.lost) is None
    assert read_protocol.calls == ["made", "data", "eof", "lost"]
    for fd in (read, write):
        await raises_async(OSError, asyncio.to_thread(os.fstat, fd))


@check(PIPES)
async def close_of_the_writer_is_eof_to_the_reader() -> None:
    read, write = os.pipe()
    reader, protocol = await _read_pipe(read)
    os.write(write, b"last")
    os.close(write)
    assert await soon(protocol.lost) is None
    assert bytes(protocol.data) == b"last" and reader.is_closing()


@check(PIPES)
async def close_of_the_reader_is_lost_to_the_writer() -> None:
    read, write = os.pipe()
    writer, protocol = await _write_pipe(write)
    os.close(read)
    # noticed without writing
    error = await soon(protocol.lost)
    assert error is None or isinstance(error, BrokenPipeError), error
    writer.write(b"into the void")
    assert writer.is_closing()


@check(PIPES)
async def reader_pauses_and_resumes() -> None:
    read, write = os.pipe()
    reader, protocol = await _read_pipe(read)
    reader.pause_reading()
    assert not reader.is_reading()
    os.write(write, b"held")
    await asyncio.sleep(0.05)
    assert not protocol.data
    reader.resume_reading()
    assert await protocol.received(4) == b"held"
    reader.close()
    await soon(protocol.lost)
    os.close(write)


@check(PIPES)
async def full_pipe_pauses_the_writer() -> None:
    read, write = os.pipe()
    writer, protocol = await _write_pipe(write)
    writer.write(bytes(1_000_000))
    assert protocol.calls == ["made", "pause"]
    left = 1_000_000
    while left:
        left -= len(await asyncio.to_thread(os.read, read, 1 << 20))
    await until(lambda: protocol.calls == ["made", "pause", "resume"])
    writer.close()
    await soon(protocol.lost)
    assert await asyncio.to_thread(os.read, read, 1) == b""
    os.close(read)


@check(PIPES)
async def aborted_writer_drops_its_queue() -> None:
    read, write = os.pipe()
    writer, protocol = await _write_pipe(write)
    writer.write(bytes(1_000_000))
    writer.abort()
    assert await soon(protocol.lost) is None
    os.close(read)


@check(PIPES)
async def fifo_by_path() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fifo"
        os.mkfifo(path)
        read = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        write = os.open(path, os.O_WRONLY)
        _reader, read_protocol = await _read_pipe(read)
        writer, _write_protocol = await _write_pipe(write)
        writer.write(b"fifo")
        assert await read_protocol.received(4) == b"fifo"
        writer.close()
        await soon(read_protocol.lost)


@check(PIPES)
async def sockets_serve_as_pipes() -> None:
    loop = asyncio.get_running_loop()
    left, right = socket.socketpair()
    reader, read_protocol = await soon(loop.connect_read_pipe(HalfOpen, right))
    writer, write_protocol = await soon(loop.connect_write_pipe(Recorder, left))
    writer.write(b"socket")
    assert await read_protocol.received(6) == b"socket"
    writer.close()
    await soon(write_protocol.lost)
    await soon(read_protocol.eof)
    reader.close()
    await soon(read_protocol.lost)


@check(SPECIAL)
async def pty_as_pipe() -> None:
    master, slave = pty.openpty()
    tty.setraw(master)
    reader, protocol = await _read_pipe(os.dup(slave))
    writer, _ = await _write_pipe(slave)
    os.write(master, b"typed")
    assert await protocol.received(5) == b"typed"
    writer.write(b"shown")
    assert await soon(asyncio.to_thread(os.read, master, 10)) == b"shown"
    reader.close()
    writer.close()
    await soon(protocol.lost)
    os.close(master)


@check(SPECIAL)
async def closed_pty_ends_its_reader() -> None:
    master, slave = pty.openpty()
    _reader, protocol = await _read_pipe(master)
    os.write(slave, b"bye")
    await protocol.received(3)
    os.close(slave)
    # Linux says EIO here, where a pipe has its EOF
    error = await soon(protocol.lost)
    assert error is None or isinstance(error, OSError)


@check(SPECIAL)
async def regular_files_are_no_pipes() -> None:
    loop = asyncio.get_running_loop()
    with tempfile.TemporaryFile() as file:
        await raises_async(ValueError, loop.connect_read_pipe(Recorder, file))
        await raises_async(ValueError, loop.connect_write_pipe(Recorder, file))
        assert not file.closed


@check(SPECIAL)
async def character_device_as_pipe() -> None:
    loop = asyncio.get_running_loop()
    with open("/dev/null", "wb", 0) as null:
        # the kernel can't poll /dev/null: stock asyncio passes on what epoll says
        try:
            writer, protocol = await soon(loop.connect_write_pipe(Recorder, null))
        except PermissionError:
            return
        writer.write(b"away")
        writer.close()
        await soon(protocol.lost)
