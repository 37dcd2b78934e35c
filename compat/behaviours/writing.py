"""What write() and writelines() take, and when."""

from __future__ import annotations

import asyncio
import os
import sys

from compat.behaviours import check
from compat.behaviours.helpers import logged, pair, raises, soon

TYPES = "write()/writelines() of bytes, bytearray, memoryview; TypeError on str"
ALIAS = "a queued bytearray does not alias the caller's buffer"
GONE = "write()/write_eof() after the connection is gone is silent"


@check(TYPES)
async def write_takes_every_kind_of_bytes() -> None:
    async with pair() as both:
        both.client.write(b"bytes ")
        both.client.write(bytearray(b"bytearray "))
        both.client.write(memoryview(b"-memoryview -")[1:-1])
        both.client.write(b"")
        both.client.writelines([b"a", bytearray(b"b"), memoryview(b"c"), b""])
        both.client.writelines(iter([b"d", b"e"]))
        both.client.writelines([])
        wanted = b"bytes bytearray memoryview abcde"
        assert await both.server_protocol.received(len(wanted)) == wanted


@check(TYPES)
async def write_refuses_what_is_not_bytes() -> None:
    async with pair() as both:
        raises(TypeError, both.client.write, "text")
        raises(TypeError, both.client.write, 5)
        raises(TypeError, both.client.writelines, ["text"])
        if sys.version_info >= (3, 12):
            raises(TypeError, both.client.writelines, 5)
        assert not both.client.is_closing()


@check(TYPES)
async def small_writes_arrive_in_order() -> None:
    wanted = b"".join(b"%d," % number for number in range(20000))
    async with pair() as both:
        for number in range(20000):
            both.client.write(b"%d," % number)
            if number % 1000 == 0:
                await asyncio.sleep(0)
        assert await both.server_protocol.received(len(wanted)) == wanted


@check(TYPES)
async def large_and_small_writes_keep_their_order() -> None:
    parts = [os.urandom(size) for size in (10, 700_000, 1, 65536, 3, 1_500_000, 100)]
    async with pair() as both:
        both.client.writelines(parts[:3])
        for part in parts[3:]:
            both.client.write(part)
        wanted = b"".join(parts)
        assert await both.server_protocol.received(len(wanted)) == wanted


@check(ALIAS)
async def queued_bytearray_may_be_changed_by_its_owner() -> None:
    async with pair() as both:
        both.server.pause_reading()
        filler = bytes(20_000_000)
        both.client.write(filler)
        mine = bytearray(b"A" * 1000)
        both.client.write(mine)
        mine[:] = b"B" * 1000
        del mine[500:]
        both.server.resume_reading()
        data = await both.server_protocol.received(len(filler) + 1000)
        assert data[-1000:] == b"A" * 1000


@check(ALIAS)
async def written_bytearray_may_be_resized_at_once() -> None:
    async with pair() as both:
        mine = bytearray(b"A" * 100)
        both.client.write(mine)
        mine += b"B" * 100
        assert await both.server_protocol.received(100) == b"A" * 100


@check(GONE)
async def write_after_close_is_silent() -> None:
    async with pair() as both:
        both.client.close()
        both.client.write(b"late")
        await soon(both.client_protocol.lost)
        with logged() as records:
            for _ in range(10):
                both.client.write(b"later")
            both.client.close()
        assert both.client.is_closing()
        assert (
            any("socket.send() raised exception" in record.getMessage() for record in records) or not records
        )
        await soon(both.server_protocol.lost)
        assert not both.server_protocol.data


@check(GONE)
async def write_eof_after_close_is_silent() -> None:
    async with pair() as both:
        both.client.close()
        both.client.write_eof()
        await soon(both.client_protocol.lost)
        both.client.write_eof()
        assert both.client.get_write_buffer_size() == 0
