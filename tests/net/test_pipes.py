"""Pipe transports: FIFOs, terminals, devices and sockets, as asyncio has them."""

from __future__ import annotations

import asyncio
import os
import socket
import tty
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


class Recorder(asyncio.Protocol):
    def __init__(self) -> None:
        self.received = bytearray()
        self.flow: list[str] = []
        self.ended = False
        loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[Exception | None] = loop.create_future()
        self.news = asyncio.Event()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.news.set()

    def eof_received(self) -> None:
        self.ended = True

    def pause_writing(self) -> None:
        self.flow.append("pause")

    def resume_writing(self) -> None:
        self.flow.append("resume")

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set_result(error)

    async def until(self, size: int) -> None:
        while len(self.received) < size:
            self.news.clear()
            await self.news.wait()


@pytest.fixture
def run(loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
    return lambda main: loop.run_until_complete(asyncio.wait_for(main, 20))


async def reader_of(fd: int) -> Recorder:
    loop = asyncio.get_running_loop()
    return (await loop.connect_read_pipe(Recorder, os.fdopen(fd, "rb", 0)))[1]


async def writer_of(fd: int) -> Recorder:
    loop: Any = asyncio.get_running_loop()
    protocol: Recorder = (await loop.connect_write_pipe(Recorder, os.fdopen(fd, "wb", 0)))[1]
    return protocol


@pytest.mark.contract
def test_a_write_transport_sends_bytes_to_a_read_transport(run: Any) -> None:
    async def main() -> None:
        out, into = os.pipe()
        reader, writer = await reader_of(out), await writer_of(into)
        data = os.urandom(1 << 20)
        writer.transport.write(data)
        writer.transport.writelines([bytearray(b"end"), memoryview(b"!")])
        assert writer.flow == ["pause"] and writer.transport.get_write_buffer_size() > 0
        writer.transport.write_eof()
        assert await reader.lost is None and reader.ended
        assert reader.received == data + b"end!"
        assert await writer.lost is None
        assert reader.transport.get_extra_info("pipe").closed and writer.flow == ["pause", "resume"]

    run(main())


@pytest.mark.contract
def test_a_write_transport_ends_when_the_reader_closes(run: Any) -> None:
    async def main() -> None:
        out, into = os.pipe()
        writer = await writer_of(into)
        os.close(out)
        assert await writer.lost is None  # nothing was queued: no error
        out, into = os.pipe()
        writer = await writer_of(into)
        writer.transport.write(bytes(1 << 20))
        os.close(out)
        assert isinstance(await writer.lost, BrokenPipeError)

    run(main())


@pytest.mark.contract
def test_reading_pauses_and_resumes(run: Any) -> None:
    async def main() -> None:
        out, into = os.pipe()
        reader = await reader_of(out)
        os.write(into, b"first")
        await reader.until(5)
        reader.transport.pause_reading()
        os.write(into, b"second")
        for _ in range(3):
            await asyncio.sleep(0)
        assert reader.received == b"first" and not reader.transport.is_reading()
        reader.transport.resume_reading()
        await reader.until(11)
        os.close(into)
        assert await reader.lost is None

    run(main())


@pytest.mark.contract
def test_both_ends_of_a_named_fifo_exchange_data(run: Any, tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "fifo"
        os.mkfifo(path)
        reader = await reader_of(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        writer = await writer_of(os.open(path, os.O_WRONLY))
        writer.transport.write(b"through")
        await reader.until(7)
        writer.transport.abort()
        assert await reader.lost is None and await writer.lost is None

    run(main())


@pytest.mark.contract
def test_transports_read_and_write_a_terminal(run: Any) -> None:
    async def main() -> None:
        master, slave = os.openpty()
        tty.setraw(slave)
        reader = await reader_of(os.dup(slave))
        writer = await writer_of(slave)
        os.write(master, b"typed")
        await reader.until(5)
        writer.transport.write(b"shown")
        assert os.read(master, 100) == b"shown"
        writer.transport.close()
        await writer.lost
        os.close(master)
        error = await reader.lost
        assert error is None or isinstance(error, OSError)

    run(main())


@pytest.mark.contract
def test_transports_write_a_character_device_and_use_a_socket(run: Any) -> None:
    async def main() -> None:
        writer = await writer_of(os.open("/dev/zero", os.O_WRONLY))
        writer.transport.write(b"nowhere")
        writer.transport.close()
        assert await writer.lost is None
        left, right = socket.socketpair()
        reader, writer = await reader_of(left.detach()), await writer_of(right.detach())
        writer.transport.write(b"through")
        await reader.until(7)
        writer.transport.close()
        assert await reader.lost is None and await writer.lost is None

    run(main())


@pytest.mark.contract
def test_a_regular_file_is_refused(run: Any, tmp_path: Path) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with open(tmp_path / "file", "w+b", 0) as file:
            with pytest.raises(ValueError, match="Pipe transport is"):
                await loop.connect_read_pipe(Recorder, file)
            with pytest.raises(ValueError, match="Pipe transport is"):
                await loop.connect_write_pipe(Recorder, file)

    run(main())


@pytest.mark.contract
def test_the_peer_sees_the_end_of_a_closed_pipe_at_once(run: Any) -> None:
    """No poll in the kernel keeps the pipe open."""

    async def main() -> None:
        out, into = os.pipe()
        writer = await writer_of(into)
        await asyncio.sleep(0.01)
        writer.transport.close()
        await writer.lost
        await asyncio.sleep(0)
        os.set_blocking(out, False)
        assert os.read(out, 1) == b""
        os.close(out)

    run(main())


@pytest.mark.contract
def test_a_pipe_of_a_closed_loop_is_shown_as_open(loop: asyncio.AbstractEventLoop) -> None:
    reading, writing = os.pipe()
    reader = loop.run_until_complete(reader_of(reading))
    writer = loop.run_until_complete(writer_of(writing))
    assert "idle" in repr(writer.transport)
    loop.close()
    assert "open" in repr(reader.transport)
    assert "open" in repr(writer.transport)
    for transport in (reader.transport, writer.transport):
        transport._pipe.close()
        transport._pipe = None  # or it warns that it is unclosed
