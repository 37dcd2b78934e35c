"""asyncio's own StreamReader on our transports: compiled reading is asyncio's reading."""

from __future__ import annotations

import asyncio
import inspect
import random
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

pytestmark = pytest.mark.contract

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def streams(limit: int = 2**16) -> AsyncIterator[tuple[Streams, Streams]]:
    """The two ends of a connection, both as streams."""
    left, right = socket.socketpair()
    left.setblocking(False)
    right.setblocking(False)
    ends = [await asyncio.open_connection(sock=sock, limit=limit) for sock in (left, right)]
    try:
        yield ends[0], ends[1]
    finally:
        for _, writer in ends:
            writer.close()
        for _, writer in ends:
            await writer.wait_closed()


def on(loop: Any, test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await asyncio.wait_for(test(), 30)

    loop.run_until_complete(main())


async def turns_until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0)


def test_reads_of_any_sizes_return_all_that_was_sent(loop: Any) -> None:
    chance = random.Random(7)

    async def test() -> None:
        async with streams() as ((reader, _), (_, writer)):
            data = chance.randbytes(50_000)

            async def send() -> None:
                sent = 0
                while sent < len(data):
                    size = chance.choice((1, 10, 1000, 5000))
                    writer.write(data[sent : sent + size])
                    sent += size
                    await writer.drain()
                    if chance.random() < 0.5:
                        await asyncio.sleep(0)
                writer.write_eof()

            sending = asyncio.create_task(send())
            got = b""
            while len(got) < len(data):
                size = chance.choice((1, 7, 100, 3000, 20_000))
                if chance.random() < 0.5:
                    try:
                        got += await reader.readexactly(size)
                    except asyncio.IncompleteReadError as error:
                        got += error.partial
                else:
                    part = await reader.read(size)
                    assert len(part) <= size
                    got += part
            assert got == data
            assert await reader.read(10) == b"" and reader.at_eof()
            await sending

    on(loop, test)


def test_lines_and_portions_mix(loop: Any) -> None:
    async def test() -> None:
        async with streams() as ((reader, _), (_, writer)):
            writer.write(b"one\ntwothree\nrest")
            writer.write_eof()
            assert await reader.readline() == b"one\n"
            assert await reader.readexactly(3) == b"two"
            assert await reader.readuntil(b"e\n") == b"three\n"
            assert await reader.read() == b"rest"

    on(loop, test)


def test_reading_nothing_waits_for_nothing(loop: Any) -> None:
    async def test() -> None:
        async with streams() as ((reader, _), _):
            assert await reader.read(0) == b"" == await reader.readexactly(0)
            with pytest.raises(ValueError, match="less than zero"):
                await reader.readexactly(-1)

    on(loop, test)


def test_an_early_end_gives_the_bytes_that_there_were(loop: Any) -> None:
    async def test() -> None:
        async with streams() as ((reader, _), (_, writer)):
            writer.write(b"abc")
            writer.write_eof()
            with pytest.raises(asyncio.IncompleteReadError) as caught:
                await reader.readexactly(10)
            assert caught.value.partial == b"abc" and caught.value.expected == 10
            assert await reader.read(5) == b"" and reader.at_eof()

    on(loop, test)


def test_two_cannot_wait_at_once(loop: Any) -> None:
    async def test() -> None:
        async with streams() as ((reader, _), (_, writer)):
            first = asyncio.create_task(reader.read(10))
            await asyncio.sleep(0)
            for method in (reader.read, reader.readexactly):
                with pytest.raises(RuntimeError, match="already waiting for incoming data"):
                    await method(1)
            writer.write(b"x")
            assert await first == b"x"

    on(loop, test)


def begin(reading: Any) -> asyncio.Future[None]:
    """The coroutine's first step, done by hand: what a task would now wait for."""
    waiter = reading.send(None)
    assert isinstance(waiter, asyncio.Future)
    return waiter


def finish(reading: Any) -> bytes:
    with pytest.raises(StopIteration) as caught:
        reading.send(None)
    return caught.value.value  # type: ignore[no-any-return]


@pytest.mark.parametrize("method", ["read", "readexactly"])
@pytest.mark.parametrize("end", ["throw", "close"])
def test_data_of_a_cancelled_read_goes_to_the_next_read(loop: Any, method: str, end: str) -> None:
    async def test() -> None:
        async with streams() as ((reader, _), (_, writer)):
            reading = getattr(reader, method)(1)
            waiter = begin(reading)
            writer.write(b"h")
            await turns_until(waiter.done)
            if end == "close":
                reading.close()
            else:
                with pytest.raises(asyncio.CancelledError):
                    reading.throw(asyncio.CancelledError())
            writer.write(b"ello")
            assert await reader.readexactly(5) == b"hello"

    on(loop, test)


@pytest.mark.parametrize("method", ["read", "readexactly"])
def test_a_reader_whose_last_byte_is_on_its_way_is_not_at_its_end(loop: Any, method: str) -> None:
    async def test() -> None:
        async with streams() as ((reader, _), (_, writer)):
            reading = getattr(reader, method)(1)
            waiter = begin(reading)
            writer.write(b"x")
            writer.write_eof()
            await turns_until(lambda: reader._eof)  # type: ignore[attr-defined]
            assert waiter.done() and not reader.at_eof()
            assert finish(reading) == b"x"
            assert reader.at_eof()

    on(loop, test)


@pytest.mark.relies_on("adopted_streams")
@pytest.mark.engines("uring", "epoll")  # asyncio's own lets it; the fake one may bring what is sent in parts
def test_a_second_reader_does_not_overtake_the_first(loop: Any) -> None:
    async def test() -> None:
        async with streams() as ((reader, _), (_, writer)):
            first, second = reader.readexactly(2), reader.readexactly(2)
            waiter = begin(first)
            writer.write(b"ab")
            await turns_until(waiter.done)
            other = begin(second)
            writer.write(b"cd")
            await turns_until(other.done)
            assert finish(first) == b"ab" and finish(second) == b"cd"

    on(loop, test)


@pytest.mark.relies_on("adopted_streams")
@pytest.mark.engines("uring", "epoll")
def test_data_left_by_a_cancelled_first_read_wakes_the_second(loop: Any) -> None:
    async def test() -> None:
        async with streams() as ((reader, _), (_, writer)):
            first, second = reader.read(2), reader.read(2)
            waiter = begin(first)
            writer.write(b"ab")
            await turns_until(waiter.done)
            other = begin(second)
            first.close()
            assert other.done() and finish(second) == b"ab"

    on(loop, test)


def test_an_error_is_raised_by_pending_and_later_reads(loop: Any) -> None:
    async def test() -> None:
        async with streams() as ((reader, _), _):
            reading = asyncio.create_task(reader.read(10))
            await asyncio.sleep(0)
            reader.set_exception(ZeroDivisionError("told"))
            for awaited in (reading, reader.read(1), reader.readexactly(0)):
                with pytest.raises(ZeroDivisionError, match="told"):
                    await awaited

    on(loop, test)


def test_a_full_buffer_pauses_and_reading_resumes(loop: Any) -> None:
    async def test() -> None:
        async with streams(limit=100) as ((reader, _), (_, writer)):
            data = bytes(range(256)) * 40
            writer.write(data)
            paused = reader._transport  # type: ignore[attr-defined]
            await turns_until(lambda: not paused.is_reading())
            got = await reader.readexactly(150)
            while len(got) < len(data):
                got += await reader.read(1000)
            assert got == data
            writer.write(b"more" * 1000)
            assert await reader.readexactly(4000) == b"more" * 1000

    on(loop, test)


def test_timeouts_and_shields_work_as_for_any_coroutine(loop: Any) -> None:
    async def test() -> None:
        async with streams() as ((reader, _), (_, writer)):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(reader.read(1), 0.001)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(reader.readexactly(1), 0)
            writer.write(b"a")
            assert await asyncio.wait_for(reader.read(1), 10) == b"a"
            kept = asyncio.ensure_future(reader.readexactly(2))
            shielded = asyncio.shield(kept)
            await asyncio.sleep(0)
            shielded.cancel()
            writer.write(b"bc")
            assert await kept == b"bc"

    on(loop, test)


def test_reading_is_a_coroutine(loop: Any) -> None:
    async def test() -> None:
        async with streams() as ((reader, _), _):
            assert isinstance(reader, asyncio.StreamReader) and "StreamReader" in repr(reader)
            if sys.version_info >= (3, 12):
                assert inspect.iscoroutinefunction(reader.read)
            elif hasattr(asyncio, "iscoroutinefunction"):
                assert asyncio.iscoroutinefunction(reader.read)
            for reading in (reader.read(1), reader.readexactly(1)):
                assert asyncio.iscoroutine(reading) and inspect.isawaitable(reading)
                reading.close()
                with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
                    await reading

    on(loop, test)


def test_a_read_that_is_never_awaited_is_reported(loop: Any) -> None:
    async def test() -> None:
        async with streams() as ((reader, _), _):
            with pytest.warns(RuntimeWarning, match="was never awaited"):
                reader.read(1)

    on(loop, test)


def test_a_subclass_reads_its_own_way(loop: Any) -> None:
    class Loud(asyncio.StreamReader):
        async def read(self, n: int = -1) -> bytes:
            return (await super().read(n)).upper()

    async def test() -> None:
        left, right = socket.socketpair()
        left.setblocking(False)
        reader = Loud(loop=loop)
        transport, _ = await loop.create_connection(
            lambda: asyncio.StreamReaderProtocol(reader, loop=loop), sock=left
        )
        right.send(b"quiet")
        got = b""
        while len(got) < 5:
            got += await reader.read(5)
        assert got == b"QUIET" and type(reader) is Loud
        transport.abort()
        right.close()
        await asyncio.sleep(0)

    on(loop, test)


def test_the_last_chunk_survives_closing(loop: Any) -> None:
    """What arrived before the connection was lost can still be read."""

    async def test() -> None:
        async with streams() as ((reader, mine), (_, writer)):
            writer.write(b"x" * 1000)
            await turns_until(lambda: len(reader._buffer) == 1000)  # type: ignore[attr-defined]
            mine.transport.abort()
            await asyncio.sleep(0)
            assert await reader.readexactly(600) + await reader.read(600) == b"x" * 1000

    on(loop, test)
