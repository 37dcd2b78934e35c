"""The epoll engine: what it tells epoll, and when."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import uringloop
from uringloop._core.awaitables.file_op import mkdirat
from uringloop._core.engine.workers import Workers

pytestmark = pytest.mark.engines("epoll")


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair()
    left.setblocking(False)
    right.setblocking(False)
    with left, right:
        yield left, right


def settle(loop: Any) -> None:
    loop.call_later(0.001, loop.stop)
    loop.run_forever()


def test_an_idle_loop_waits_once_until_something_happens(loop: Any) -> None:
    used: dict[str, int] = {}

    def run() -> None:
        settle(loop)
        before = loop._counts()
        alarm = threading.Timer(0.1, loop.call_soon_threadsafe, [loop.stop])
        alarm.start()
        loop.run_forever()
        alarm.join()
        used.update({name: count - before[name] for name, count in loop._counts().items()})

    # In a thread of its own: where another test had a ring, the kernel, taking it down, interrupts waits.
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert used["sleeps"] <= 2
    assert used["system_calls"] <= 4


def test_a_chain_of_callbacks_asks_epoll_once_in_so_many_turns(loop: Any) -> None:
    settle(loop)
    before = loop._counts()["system_calls"]

    def chain(left: int) -> None:
        if left:
            loop.call_soon(chain, left - 1)
        else:
            loop.stop()

    loop.call_soon(chain, 1600)
    loop.run_forever()
    assert 90 <= loop._counts()["system_calls"] - before <= 110


def test_timers_are_never_early_without_nanoseconds(engine: str, program: Callable[..., Any]) -> None:
    """Where the kernel has no epoll_pwait2, waits are rounded up to milliseconds."""
    code = """
import asyncio, ctypes, struct, uringloop
libc = ctypes.CDLL(None, use_errno=True)
steps = [(0x20, 0, 0, 0), (0x15, 1, 0, 441), (0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050000 | 38)]
text = b"".join(struct.pack("HBBI", *step) for step in steps)
area = ctypes.create_string_buffer(text, len(text))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, struct.pack("HxxxxxxP", len(steps), ctypes.addressof(area))) == 0

async def main():
    loop = asyncio.get_running_loop()
    for i in range(40):
        delay = 0.0003 * (i % 10)
        begun = loop.time()
        await asyncio.sleep(delay)
        assert loop.time() - begun >= delay
    before = loop._counts()["turns"]
    await asyncio.sleep(0.0501)
    assert loop._counts()["turns"] - before < 10

uringloop.run(main())
"""
    program(code)


def test_a_descriptor_used_by_one_call_after_the_other_may_change_its_file(loop: Any) -> None:
    """Closed and opened again between two calls of one turn: the number is the same, the file is not."""

    async def main() -> None:
        left, right = socket.socketpair()
        left.setblocking(False)
        for i in range(50):
            waiting = loop.create_task(loop.sock_recv(left, 1))
            await asyncio.sleep(0)
            loop.call_soon(right.send, b"x")
            assert await waiting == b"x"
            number = left.fileno()
            left.close()
            again, peer = socket.socketpair()
            if peer.fileno() == number:
                again, peer = peer, again
            assert again.fileno() == number, i
            right.close()
            left, right = again, peer
            left.setblocking(False)
        left.close()
        right.close()

    loop.run_until_complete(main())


def test_a_file_that_lives_on_in_a_duplicate_ends_no_wait(
    loop: Any, pair: tuple[socket.socket, socket.socket]
) -> None:
    async def main() -> int:
        left, right = socket.socketpair()
        left.setblocking(False)
        duplicate = left.dup()
        loop.call_later(0.001, right.send, b"xyz")
        assert await loop.sock_recv(left, 1) == b"x"
        left.close()
        await asyncio.sleep(0.001)
        before: int = loop._counts()["turns"]
        await asyncio.sleep(0.02)
        duplicate.close()
        right.close()
        after: int = loop._counts()["turns"]
        return after - before

    assert loop.run_until_complete(main()) < 10


def test_the_engine_says_what_it_is(loop: Any) -> None:
    settle(loop)
    assert "<EpollEngine fd=" in repr(loop.engine) and "waiting" in repr(loop.engine)


def test_a_loop_that_closes_waits_for_a_worker_that_is_slow(
    new_loop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, path = new_loop(), tmp_path / "fifo"
    os.mkfifo(path)
    jobs: list[Any] = []
    submit = Workers.submit

    def noted(self: Workers, *args: Any) -> Any:
        jobs.append(submit(self, *args))
        return jobs[-1]

    monkeypatch.setattr(Workers, "submit", noted)

    async def main() -> None:
        opening = asyncio.ensure_future(
            uringloop.open_file(path, "rb")
        )  # ends once somebody opens it for writing
        while not jobs or not jobs[0].running():
            await asyncio.sleep(0)
        opening.cancel()

    def let_it_end() -> None:
        while loop._counts()["sleeps"] < sleeps + 2:  # the first takes back what waits for readiness
            time.sleep(0.001)
        os.close(os.open(path, os.O_RDWR))

    loop.run_until_complete(main())
    sleeps = loop._counts()["sleeps"]
    thread = threading.Thread(target=let_it_end)
    thread.start()
    loop.close()
    thread.join()


def test_a_file_operation_without_a_thread_fails_and_later_ones_go_on(
    loop: Any, pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(self: object, *call: object) -> None:
        raise RuntimeError("can't start new thread")

    def interrupted(self: object, *call: object) -> None:
        raise KeyboardInterrupt

    async def main() -> None:
        making = asyncio.create_task(mkdirat(loop, -1, b"/none/none", 0, ("/none/none",)))
        arrived = asyncio.create_task(loop.sock_recv(pair[0], 1))
        pair[1].send(b"x")
        with pytest.raises(BlockingIOError):
            await making
        assert await arrived == b"x"

    monkeypatch.setattr(Workers, "submit", no_thread)
    loop.run_until_complete(main())
    monkeypatch.setattr(Workers, "submit", interrupted)
    task = loop.create_task(main())
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(task)
    loop.run_until_complete(task)  # the file's operation failed, and nothing else was lost
