"""Flow control in both directions."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from compat.behaviours import check
from compat.behaviours.callbacks import open_echo
from compat.behaviours.helpers import Recorder, pair, raises, soon, until

READING = "pause_reading, resume_reading, is_reading; the peer is held back"
WRITING = "set/get_write_buffer_limits, pause_writing, resume_writing"


@check(READING)
async def paused_reader_holds_the_peer_back() -> None:
    message = os.urandom(25_000_000)
    async with pair() as both:
        assert both.server.is_reading()
        both.server.pause_reading()
        assert not both.server.is_reading()
        both.client.write(message)
        await asyncio.sleep(0.2)
        assert not both.server_protocol.data
        assert both.client.get_write_buffer_size() > 10_000_000
        both.server.resume_reading()
        assert both.server.is_reading()
        await until(lambda: len(both.server_protocol.data) == len(message))
        assert bytes(both.server_protocol.data) == message


@check(READING)
async def pausing_inside_data_received_loses_nothing() -> None:
    class Hesitant(Recorder):
        paused = 0

        def data_received(self, data: bytes) -> None:
            assert self.transport.is_reading(), "data after pause_reading"
            super().data_received(data)
            self.transport.pause_reading()
            self.paused += 1
            asyncio.get_running_loop().call_soon(self.transport.resume_reading)

    message = os.urandom(2_000_000)
    with_errors: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: with_errors.append(context))
    async with pair(server=Hesitant) as both:
        both.client.write(message)
        assert await both.server_protocol.received(len(message)) == message
        assert both.server_protocol.paused > 1
    assert not with_errors, with_errors


@check(READING)
async def pausing_inside_connection_made_holds_from_the_start() -> None:
    class Paused(Recorder):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            transport.pause_reading()

    async with pair(server=Paused) as both:
        both.client.write(b"early")
        await asyncio.sleep(0.1)
        assert not both.server_protocol.data and not both.server.is_reading()
        both.server.resume_reading()
        assert await both.server_protocol.received(5) == b"early"


@check(READING)
async def pause_and_resume_may_be_repeated() -> None:
    async with pair() as both:
        both.server.pause_reading()
        both.server.pause_reading()
        both.server.resume_reading()
        both.server.resume_reading()
        both.client.write(b"data")
        assert await both.server_protocol.received(4) == b"data"
        for _ in range(50):
            both.server.pause_reading()
            both.client.write(b"more")
            await asyncio.sleep(0)
            both.server.resume_reading()
        assert await both.server_protocol.received(204) == b"data" + b"more" * 50
        both.server.close()
        both.server.pause_reading()
        both.server.resume_reading()


@check(READING)
async def eof_waits_for_a_paused_reader() -> None:
    async with pair() as both:
        both.server.pause_reading()
        both.client.write(b"last words")
        both.client.close()
        await asyncio.sleep(0.1)
        assert both.server_protocol.calls == ["made"], both.server_protocol.calls
        both.server.resume_reading()
        await soon(both.server_protocol.lost)
        assert both.server_protocol.calls == ["made", "data", "eof", "lost"]
        assert bytes(both.server_protocol.data) == b"last words"


@check(WRITING)
async def write_buffer_limits_have_their_defaults() -> None:
    async with pair() as both:
        transport = both.client
        assert transport.get_write_buffer_limits() == (16384, 65536)
        transport.set_write_buffer_limits(high=1000)
        assert transport.get_write_buffer_limits() == (250, 1000)
        transport.set_write_buffer_limits(low=100)
        assert transport.get_write_buffer_limits() == (100, 400)
        transport.set_write_buffer_limits(0, 0)
        assert transport.get_write_buffer_limits() == (0, 0)
        transport.set_write_buffer_limits()
        assert transport.get_write_buffer_limits() == (16384, 65536)
        raises(ValueError, transport.set_write_buffer_limits, high=10, low=20)
        raises(ValueError, transport.set_write_buffer_limits, high=10, low=-1)


@check(WRITING)
async def writing_is_paused_at_once_and_resumed_when_drained() -> None:
    async with pair() as both:
        both.server.pause_reading()
        both.client.write(bytes(20_000_000))
        # in the call itself: a drain() that follows has to block
        assert both.client_protocol.calls == ["made", "pause"], both.client_protocol.calls
        assert both.client.get_write_buffer_size() > 65536
        both.client.write(bytes(1000))
        assert both.client_protocol.calls == ["made", "pause"]
        both.server.resume_reading()
        await both.server_protocol.received(20_001_000)
        await until(lambda: both.client_protocol.calls == ["made", "pause", "resume"])
        assert both.client.get_write_buffer_size() == 0


@check(WRITING)
async def drain_blocks_right_after_a_large_write() -> None:
    reader, writer = await open_echo()
    writer.write(bytes(30_000_000))
    draining = asyncio.create_task(writer.drain())
    await asyncio.sleep(0.1)
    assert not draining.done()
    assert len(await soon(reader.readexactly(30_000_000))) == 30_000_000
    await soon(draining)
    writer.close()


@check(WRITING)
async def writelines_obeys_flow_control() -> None:
    async with pair() as both:
        both.server.pause_reading()
        both.client.writelines([bytes(1_000_000)] * 20)
        await asyncio.sleep(0.05)
        assert both.client_protocol.calls == ["made", "pause"], both.client_protocol.calls
        both.server.resume_reading()
        await both.server_protocol.received(20_000_000)
        await until(lambda: both.client_protocol.calls[-1] == "resume")


@check(WRITING)
async def zero_high_water_mark_pauses_for_any_queue() -> None:
    async with pair() as both:
        both.client.set_write_buffer_limits(high=0)
        both.server.pause_reading()
        both.client.write(bytes(20_000_000))
        assert "pause" in both.client_protocol.calls
        both.server.resume_reading()
        await both.server_protocol.received(20_000_000)
        await until(lambda: both.client_protocol.calls[-1] == "resume")
