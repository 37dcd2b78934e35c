"""loop.sendfile and loop.sock_sendfile."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import socket
import tempfile
from collections.abc import Iterator
from typing import Any, BinaryIO

from compat.behaviours import check
from compat.behaviours.helpers import client_tls, pair, raises, raises_async, server_tls, soon

SENDFILE = "loop.sendfile (offset, count, fallback=)"
SOCK_SENDFILE = "loop.sock_sendfile"
DATA = os.urandom(3_000_000)


@contextlib.contextmanager
def _file() -> Iterator[BinaryIO]:
    with tempfile.TemporaryFile() as file:
        file.write(DATA)
        file.flush()
        # somewhere else than at the start: the offset counts, not the position
        file.seek(777)
        yield file


@check(SENDFILE)
async def sendfile_sends_the_whole_file() -> None:
    loop = asyncio.get_running_loop()
    with _file() as file:
        async with pair() as both:
            assert await soon(loop.sendfile(both.client, file)) == len(DATA)
            assert file.tell() == len(DATA)
            assert await both.server_protocol.received(len(DATA)) == DATA


@check(SENDFILE)
async def sendfile_keeps_offset_and_count() -> None:
    loop = asyncio.get_running_loop()
    with _file() as file:
        async with pair() as both:
            assert await soon(loop.sendfile(both.client, file, 1000, 500_000)) == 500_000
            assert file.tell() == 501_000
            assert await both.server_protocol.received(500_000) == DATA[1000:501_000]
            # beyond the end there is nothing to send
            assert await soon(loop.sendfile(both.client, file, len(DATA) + 10)) == 0
            assert await soon(loop.sendfile(both.client, file, len(DATA) - 10, 100)) == 10


@check(SENDFILE)
async def sendfile_stays_between_the_writes_around_it() -> None:
    loop = asyncio.get_running_loop()
    with _file() as file:
        async with pair() as both:
            both.client.write(b"head" * 100_000)
            sending = asyncio.create_task(loop.sendfile(both.client, file))
            await asyncio.sleep(0)
            await soon(sending)
            both.client.write(b"tail")
            wanted = b"head" * 100_000 + DATA + b"tail"
            assert await both.server_protocol.received(len(wanted)) == wanted


@check(SENDFILE)
async def sendfile_refuses_writes_meanwhile() -> None:
    loop = asyncio.get_running_loop()
    with tempfile.TemporaryFile() as file:
        # more than all the buffers in between hold
        file.truncate(40_000_000)
        async with pair() as both:
            both.server.pause_reading()
            sending = asyncio.create_task(loop.sendfile(both.client, file))
            await asyncio.sleep(0.05)
            assert not sending.done()
            raises(RuntimeError, both.client.write, b"in between")
            both.server.resume_reading()
            await soon(sending)


@check(SENDFILE)
async def sendfile_over_tls_falls_back_or_refuses() -> None:
    loop = asyncio.get_running_loop()
    options = {"ssl": client_tls(), "server_hostname": "localhost"}
    with _file() as file:
        async with pair(client_options=options, ssl=server_tls()) as both:
            await raises_async(RuntimeError, loop.sendfile(both.client, file, fallback=False))
            assert await soon(loop.sendfile(both.client, file, 10, 200_000)) == 200_000
            assert await both.server_protocol.received(200_000) == DATA[10:200_010]


@check(SENDFILE)
async def sendfile_falls_back_for_what_is_no_file() -> None:
    loop = asyncio.get_running_loop()
    async with pair() as both:
        buffer: Any = io.BytesIO(DATA[:100_000])
        await raises_async(
            asyncio.SendfileNotAvailableError, loop.sendfile(both.client, buffer, fallback=False)
        )
        assert await soon(loop.sendfile(both.client, buffer)) == 100_000
        assert await both.server_protocol.received(100_000) == DATA[:100_000]


@check(SENDFILE)
async def sendfile_names_wrong_arguments() -> None:
    loop: Any = asyncio.get_running_loop()
    with _file() as file:
        async with pair() as both:
            await raises_async(ValueError, loop.sock_sendfile(both.client.get_extra_info("socket"), file, -1))
            both.client.close()
            await raises_async(RuntimeError, loop.sendfile(both.client, file))


@check(SOCK_SENDFILE)
async def sock_sendfile_sends_the_whole_file_or_a_part() -> None:
    loop = asyncio.get_running_loop()
    left, right = socket.socketpair()
    left.setblocking(False)
    right.setblocking(False)
    with left, right, _file() as file:
        for offset, count, wanted in ((0, None, DATA), (100, 100_000, DATA[100:100_100])):
            sending = asyncio.create_task(loop.sock_sendfile(left, file, offset, count))
            data = bytearray()
            while len(data) < len(wanted):
                data += await soon(loop.sock_recv(right, 1 << 20))
            assert await soon(sending) == len(wanted)
            assert bytes(data) == wanted
            assert file.tell() == offset + len(wanted)


@check(SOCK_SENDFILE)
async def sock_sendfile_checks_its_arguments() -> None:
    loop: Any = asyncio.get_running_loop()
    left, right = socket.socketpair(type=socket.SOCK_DGRAM)
    left.setblocking(False)
    with left, right, _file() as file:
        await raises_async(ValueError, loop.sock_sendfile(left, file))
    left, right = socket.socketpair()
    left.setblocking(False)
    with left, right, _file() as file:
        await raises_async(ValueError, loop.sock_sendfile(left, file, 0, -1))
        await raises_async(TypeError, loop.sock_sendfile(left, file, "0"))
        with open(__file__, encoding="utf-8") as text:
            await raises_async(ValueError, loop.sock_sendfile(left, text))
