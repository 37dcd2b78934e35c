"""The fake kernel interferes, and always in the same way for the same seed."""

from __future__ import annotations

import asyncio
import socket

import pytest

import uringloop
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
