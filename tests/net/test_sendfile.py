"""Sendfile, to sockets and to transports: counts, offsets and the file's position as asyncio leaves them."""

from __future__ import annotations

import asyncio
import io
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

DATA = bytes(range(256)) * 8000


class Sink(asyncio.Protocol):
    def __init__(self) -> None:
        self.received = bytearray()
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set_result(error)


@pytest.fixture
def run(loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
    return lambda main: loop.run_until_complete(asyncio.wait_for(main, 20))


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Any]:
    path = tmp_path / "file"
    path.write_bytes(DATA)
    with open(path, "rb") as opened:
        yield opened


PARTS = pytest.mark.parametrize(
    ("offset", "count"),
    [(0, None), (1000, None), (0, 5), (1000, 100_000), (len(DATA) - 5, 10), (len(DATA) + 5, None)],
)


def part(offset: int, count: int | None) -> bytes:
    return DATA[offset:] if count is None else DATA[offset : offset + count]


@pytest.mark.contract
@pytest.mark.parametrize("fallback", [True, False])
@PARTS
def test_sock_sendfile_sends_a_part_of_a_file(
    loop: asyncio.AbstractEventLoop, run: Any, file: Any, offset: int, count: int | None, fallback: bool
) -> None:
    async def main() -> None:
        left, right = socket.socketpair()
        with left, right:
            left.setblocking(False)
            left.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
            _, sink = await loop.create_connection(Sink, sock=right)
            sent = await loop.sock_sendfile(left, file, offset, count, fallback=fallback)
            left.close()
            await sink.lost
            assert sink.received == part(offset, count) and sent == len(sink.received)
            if sent:  # else some versions of asyncio leave it where it was, some at the offset
                assert file.tell() == offset + sent

    run(main())


@pytest.mark.parametrize("fallback", [True, False])
def test_sock_sendfile_from_the_end_of_a_file_leaves_the_position_there(
    loop: asyncio.AbstractEventLoop, run: Any, file: Any, fallback: bool
) -> None:
    async def main() -> None:
        left, right = socket.socketpair()
        with left, right:
            left.setblocking(False)
            file.seek(123)
            assert await loop.sock_sendfile(left, file, len(DATA), fallback=fallback) == 0
            assert file.tell() == len(DATA)

    run(main())


@pytest.mark.contract
@PARTS
def test_sendfile_sends_a_part_of_a_file_through_a_transport(
    loop: asyncio.AbstractEventLoop, run: Any, file: Any, offset: int, count: int | None
) -> None:
    async def main() -> None:
        left, right = socket.socketpair()
        _, sink = await loop.create_connection(Sink, sock=right)
        transport, _ = await loop.create_connection(asyncio.Protocol, sock=left)
        transport.write(b"before " * 10_000)
        sent = await loop.sendfile(transport, file, offset, count)
        transport.write(b" after")
        transport.close()
        await sink.lost
        assert sink.received == b"before " * 10_000 + part(offset, count) + b" after"
        assert sent == len(part(offset, count))

    run(main())


@pytest.mark.contract
def test_a_file_follows_a_small_write_of_the_same_turn(
    loop: asyncio.AbstractEventLoop, run: Any, file: Any
) -> None:
    async def main() -> None:
        left, right = socket.socketpair()
        _, sink = await loop.create_connection(Sink, sock=right)
        transport, _ = await loop.create_connection(asyncio.Protocol, sock=left)
        transport.write(b"before")  # it waits for the end of the turn, and sendfile() for the end of its send
        await loop.sendfile(transport, file)
        transport.close()
        await sink.lost
        assert sink.received == b"before" + DATA

    run(main())


@pytest.mark.contract
def test_sock_sendfile_reads_and_sends_objects_without_a_descriptor(
    loop: asyncio.AbstractEventLoop, run: Any
) -> None:
    async def main() -> None:
        for fallback in (True, False):
            left, right = socket.socketpair()
            left.setblocking(False)
            _, sink = await loop.create_connection(Sink, sock=right)
            if fallback:
                assert await loop.sock_sendfile(left, io.BytesIO(DATA), 7) == len(DATA) - 7
            else:
                with pytest.raises(asyncio.SendfileNotAvailableError):
                    await loop.sock_sendfile(left, io.BytesIO(DATA), fallback=False)
            left.close()
            await sink.lost
            assert sink.received == (DATA[7:] if fallback else b"")

    run(main())


@pytest.mark.contract
def test_sendfile_reads_and_sends_objects_without_a_descriptor(
    loop: asyncio.AbstractEventLoop, run: Any
) -> None:
    async def main() -> None:
        left, right = socket.socketpair()
        _, sink = await loop.create_connection(Sink, sock=right)
        transport, _ = await loop.create_connection(asyncio.Protocol, sock=left)
        assert await loop.sendfile(transport, io.BytesIO(DATA)) == len(DATA)
        transport.close()
        await sink.lost
        assert sink.received == DATA

    run(main())


@pytest.mark.contract
def test_a_cancelled_sock_sendfile_leaves_the_position_after_the_sent_bytes(
    loop: asyncio.AbstractEventLoop, run: Any, file: Any
) -> None:
    async def main() -> None:
        left, right = socket.socketpair()
        with left, right:
            left.setblocking(False)
            sending = loop.create_task(loop.sock_sendfile(left, file))
            for _ in range(5):
                await asyncio.sleep(0)
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            # asyncio's own loop says so only when the socket is writable again.
            left.close()
            right.setblocking(True)
            received = b""
            while chunk := right.recv(1 << 20):
                received += chunk
            assert DATA.startswith(received)
            if not isinstance(loop, asyncio.SelectorEventLoop):
                assert file.tell() == len(received) > 0

    run(main())


@pytest.mark.contract
def test_sock_sendfile_raises_if_the_peer_closes(
    loop: asyncio.AbstractEventLoop, run: Any, file: Any
) -> None:
    async def main() -> None:
        left, right = socket.socketpair()
        with left, right:
            left.setblocking(False)
            sending = loop.create_task(loop.sock_sendfile(left, file))
            for _ in range(3):
                await asyncio.sleep(0)
            right.close()
            with pytest.raises((BrokenPipeError, ConnectionResetError)):
                await sending

    run(main())


@pytest.mark.contract
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((-1, None), ValueError),
        ((0, -1), ValueError),
        ((0, 0), ValueError),
        (("0", None), TypeError),
        ((0, "1"), TypeError),
    ],
)
def test_sock_sendfile_refuses_wrong_arguments(
    loop: asyncio.AbstractEventLoop, run: Any, file: Any, arguments: Any, error: type[Exception]
) -> None:
    async def main() -> None:
        with socket.socket() as sock:
            sock.setblocking(False)
            with pytest.raises(error):
                await loop.sock_sendfile(sock, file, *arguments)

    run(main())


@pytest.mark.contract
def test_a_text_file_is_refused(loop: asyncio.AbstractEventLoop, run: Any) -> None:
    async def main() -> None:
        with socket.socket() as sock, open(__file__) as text:
            sock.setblocking(False)
            with pytest.raises(ValueError, match="binary"):
                await loop.sock_sendfile(sock, text)

    run(main())
