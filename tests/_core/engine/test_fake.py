"""The fake kernel interferes, and always in the same way for the same seed."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from pathlib import Path
from typing import Any

import pytest

import uringloop
from tests.streams import Recorder
from uringloop._core.lifetime.counters import DEBUG_BUILD

pytestmark = pytest.mark.engines("fake")


async def talk(rounds: int) -> int:
    """A conversation over several pairs at once; the bytes that arrived."""
    loop = asyncio.get_running_loop()
    arrived = 0

    async def one() -> None:
        nonlocal arrived
        left, right = socket.socketpair()
        with left, right:
            left.setblocking(False)
            right.setblocking(False)
            for i in range(rounds):
                await loop.sock_sendall(left, b"x" * (i + 1))
                got = 0
                while got <= i:
                    got += len(await loop.sock_recv(right, 1000))
                arrived += got

    await asyncio.gather(*(one() for _ in range(5)))
    return arrived


def interference(seed: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    monkeypatch.setenv("URINGLOOP_SEED", seed)
    loop = uringloop.new_event_loop()
    try:
        assert loop.run_until_complete(talk(20)) == 5 * sum(range(1, 21))
        assert f"seed={seed!r}" in repr(loop.engine)
        return dict(loop.engine.interfered)  # type: ignore[attr-defined]
    finally:
        loop.close()


def test_the_fake_engine_interferes_in_all_ways(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: set[str] = set()
    for seed in range(20):
        kinds |= set(interference(str(seed), monkeypatch))
    assert {"would block", "shuffled", "late", "short"} <= kinds


def test_the_same_seed_interferes_the_same_way(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = [interference("7", monkeypatch) for _ in range(2)]
    assert seen[0] == seen[1]


@pytest.mark.skipif(DEBUG_BUILD, reason="a debug build has it")
def test_a_release_build_has_no_fake_engine() -> None:
    with pytest.raises(ValueError, match="debug build"):
        uringloop.new_event_loop(engine="fake")


# Lengths that no kernel would tell: an error, and never memory behind the buffer.

FAR = 1_000_000


def test_a_receive_that_claims_more_than_its_buffer_ends_the_connection(loop: Any) -> None:
    async def main() -> None:
        left, right = socket.socketpair()
        receiver = Recorder()
        await loop.create_connection(lambda: receiver, sock=left)
        loop.engine.exaggerates["RecvOp"] = FAR
        right.send(b"x" * 100)
        error = await receiver.lost
        assert isinstance(error, OSError) and error.errno == errno.EIO
        assert receiver.received == b""
        right.close()

    loop.run_until_complete(main())


def test_a_send_that_claims_more_than_there_was_ends_the_connection(loop: Any) -> None:
    async def main() -> None:
        left, right = socket.socketpair()
        sender = Recorder()
        transport, _ = await loop.create_connection(lambda: sender, sock=left)
        loop.engine.exaggerates["SendOp"] = 2**30
        transport.write(b"x" * FAR)
        assert transport.get_write_buffer_size()
        right.settimeout(5)
        loop.call_soon(right.recv, FAR)
        error = await sender.lost
        assert isinstance(error, OSError) and error.errno == errno.EIO
        right.close()

    loop.run_until_complete(main())


def test_a_file_operation_that_claims_more_than_its_memory_is_an_error(loop: Any, tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "f"
        path.write_bytes(b"content")
        async with await uringloop.open_file(path, "r+b", buffering=0) as file:
            loop.engine.exaggerates["FileOp"] = FAR
            with pytest.raises(OSError, match="Input/output error"):
                await file.write(b"other")
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            with pytest.raises(OSError, match="Input/output error"):
                await file.pread(100, 0)
            loop.engine.exaggerates.clear()

    loop.run_until_complete(main())


def test_an_epoll_set_that_claims_more_events_than_it_has_room_for_reports_those(loop: Any) -> None:
    async def main() -> None:
        left, right = socket.socketpair()
        told = asyncio.Event()
        loop.engine.exaggerates["EpollSet"] = FAR
        loop.add_reader(left, told.set)
        right.send(b"x")
        await told.wait()
        loop.remove_reader(left)
        left.close()
        right.close()

    loop.run_until_complete(main())
