"""Unix domain sockets."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compat.behaviours import check
from compat.behaviours.helpers import Echo, Recorder, raises_async, soon, until

PATHS = "create_unix_server/connection, PathLike and bytes paths"
ABSTRACT = "abstract unix sockets"
CLEANUP = "cleanup_socket= 3.13, stale socket file replaced"


@contextlib.contextmanager
def _path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "socket"


async def _talk(path: Any) -> None:
    transport, protocol = await soon(asyncio.get_running_loop().create_unix_connection(Recorder, path))
    message = os.urandom(300_000)
    transport.write(message)
    assert await protocol.received(len(message)) == message
    transport.close()
    assert await soon(protocol.lost) is None


@check(PATHS)
async def every_kind_of_path_works() -> None:
    loop: Any = asyncio.get_running_loop()
    for kind in (str, os.fsencode, Path):
        with _path() as path:
            server = await loop.create_unix_server(Echo, kind(path))
            assert server.sockets[0].getsockname() == str(path)
            await _talk(kind(path))
            server.close()


@check(PATHS)
async def unix_streams() -> None:
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        writer.close()

    with _path() as path:
        server = await asyncio.start_unix_server(reply, path)
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"line\n")
        assert await soon(reader.read()) == b"LINE\n"
        assert writer.get_extra_info("socket").family == socket.AF_UNIX
        assert writer.get_extra_info("peername") == str(path)
        writer.close()
        server.close()


@check(PATHS)
async def unix_sockets_by_sock_argument() -> None:
    loop: Any = asyncio.get_running_loop()
    left, right = socket.socketpair()
    _one, one_protocol = await loop.create_unix_connection(Echo, sock=left)
    two, two_protocol = await loop.create_unix_connection(Recorder, sock=right)
    two.write(b"through a pair")
    assert await two_protocol.received(14) == b"through a pair"
    two.close()
    await soon(one_protocol.lost)


@check(PATHS)
async def wrong_unix_arguments_are_refused() -> None:
    loop: Any = asyncio.get_running_loop()
    await raises_async(ValueError, loop.create_unix_connection(Recorder))
    await raises_async(ValueError, loop.create_unix_connection(Recorder, "path", server_hostname="x"))
    await raises_async(ValueError, loop.create_unix_server(Recorder))
    with socket.socket() as sock:
        await raises_async(ValueError, loop.create_unix_server(Recorder, sock=sock))
        await raises_async(ValueError, loop.create_unix_connection(Recorder, sock=sock))
    with _path() as path:
        await raises_async(FileNotFoundError, loop.create_unix_connection(Recorder, path))
        path.write_text("a regular file")
        error: Any = await raises_async(OSError, loop.create_unix_server(Recorder, path))
        assert "already in use" in str(error)


@check(ABSTRACT)
async def abstract_names_work() -> None:
    loop: Any = asyncio.get_running_loop()
    for as_bytes in (False, True):
        name = f"\0compat-{os.getpid()}-{os.urandom(4).hex()}"
        spelled = name.encode() if as_bytes else name
        server = await loop.create_unix_server(Echo, spelled)
        assert server.sockets[0].getsockname() == name.encode()
        await _talk(spelled)
        server.close()


@check(CLEANUP)
async def stale_socket_file_is_replaced() -> None:
    loop: Any = asyncio.get_running_loop()
    with _path() as path:
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(str(path))
        assert path.exists()
        server = await loop.create_unix_server(Echo, path)
        await _talk(path)
        server.close()


@check(CLEANUP, since=(3, 13))
async def socket_file_is_removed_on_close() -> None:
    loop: Any = asyncio.get_running_loop()
    with _path() as path:
        server = await loop.create_unix_server(Echo, path)
        server.close()
        await until(lambda: not path.exists())
        server = await loop.create_unix_server(Echo, path, cleanup_socket=False)
        server.close()
        await asyncio.sleep(0.01)
        assert path.exists()


@check(CLEANUP, since=(3, 13))
async def socket_file_of_somebody_else_is_kept() -> None:
    loop: Any = asyncio.get_running_loop()
    with _path() as path:
        server = await loop.create_unix_server(Echo, path)
        path.unlink()
        with socket.socket(socket.AF_UNIX) as successor:
            successor.bind(str(path))
            server.close()
            await asyncio.sleep(0.01)
            assert path.exists()


@check(CLEANUP, since=(3, 13))
async def socket_file_of_an_adopted_socket_is_removed() -> None:
    loop: Any = asyncio.get_running_loop()
    with _path() as path:
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(str(path))
        server = await loop.create_unix_server(Echo, sock=sock)
        server.close()
        await until(lambda: not path.exists())
