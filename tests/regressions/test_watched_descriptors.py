"""add_reader and add_writer: closing a descriptor ends its watch, whoever gets its number."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

pytestmark = pytest.mark.contract

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Pair]:
    left, right = socket.socketpair()
    left.setblocking(False)
    right.setblocking(False)
    with left, right:
        yield left, right


def turns(loop: Any, count: int = 30) -> None:
    """Runs of one turn each, none of which sleeps."""
    for _ in range(count):
        loop.call_soon(loop.stop)
        loop.run_forever()


def one_run(loop: Any, count: int = 30) -> None:
    """The same turns in one run."""

    def turn(left: int) -> None:
        loop.call_soon(turn, left - 1) if left else loop.stop()

    loop.call_soon(turn, count)
    loop.run_forever()


RUNS = pytest.mark.parametrize("run", [turns, one_run])


@RUNS
@pytest.mark.parametrize("write", [False, True])
def test_a_number_closed_and_reused_in_one_turn_is_not_watched(
    loop: Any, run: Callable[..., None], write: bool
) -> None:
    told: list[str] = []
    ours, theirs = socket.socketpair()
    number = ours.detach()
    (loop.add_writer if write else loop.add_reader)(number, told.append, "another file")
    os.close(number)
    theirs.close()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert number in (ours.fileno(), theirs.fileno())
        theirs.send(b"x")
        ours.send(b"x")
        run(loop)
        assert told == []
        assert (loop.remove_writer if write else loop.remove_reader)(number) is True


@RUNS
def test_a_descriptor_closed_in_the_same_turn_calls_no_reader(loop: Any, run: Callable[..., None]) -> None:
    told: list[str] = []
    reading, writing = os.pipe()
    loop.add_reader(reading, told.append, "closed")
    os.close(reading)
    os.close(writing)
    run(loop)
    assert told == []
    assert loop.remove_reader(reading) is True


@RUNS
def test_a_reader_that_closes_its_descriptor_is_called_once(
    loop: Any, run: Callable[..., None], engine: str
) -> None:
    told: list[str] = []
    reading, writing = os.pipe()
    os.write(writing, b"x")

    def read() -> None:
        told.append("told")
        with suppress(OSError):
            os.close(reading)

    loop.add_reader(reading, read)
    run(loop, 300 if engine == "fake" else 30)
    assert told == ["told"]
    assert loop.remove_reader(reading) is True
    os.close(writing)


def test_a_peer_sees_the_end_of_a_watched_number_at_once(loop: Any, ends: Pair) -> None:
    left, right = ends
    number = left.detach()
    loop.add_reader(number, print)
    one_run(loop)
    os.close(number)
    assert right.recv(1) == b""
    loop.remove_reader(number)


def test_a_file_kept_open_by_a_duplicate_is_still_watched(loop: Any, ends: Pair) -> None:
    left, right = ends
    duplicate = left.dup()
    number = left.detach()
    loop.add_reader(number, lambda: (duplicate.recv(1), loop.stop()))
    one_run(loop)
    os.close(number)
    right.send(b"x")
    loop.run_forever()
    assert loop.remove_reader(number) is True
    duplicate.close()


def test_a_number_reused_while_a_duplicate_is_open_watches_the_new_file(loop: Any, engine: str) -> None:
    if engine == "asyncio":
        pytest.skip("its selector goes on watching the file before")
    told: list[str] = []
    left, right = socket.socketpair()
    duplicate = left.dup()
    number = left.fileno()
    loop.add_reader(left, told.append, "before")
    one_run(loop)
    left.close()
    again, peer = socket.socketpair()
    if peer.fileno() == number:
        again, peer = peer, again
    assert again.fileno() == number
    right.send(b"for the duplicate")
    loop.add_reader(again, lambda: (told.append("now"), loop.remove_reader(again)))
    one_run(loop)
    assert told == []
    peer.send(b"x")
    one_run(loop, 100)
    assert told == ["now"]
    for each in (right, duplicate, again, peer):
        each.close()


@pytest.mark.parametrize("write", [False, True])
def test_a_reader_is_called_in_each_turn(loop: Any, ends: Pair, engine: str, write: bool) -> None:
    if engine == "fake":
        pytest.skip("it may be late")
    left, right = ends
    told: list[int] = []
    right.send(b"x")
    (loop.add_writer if write else loop.add_reader)(left, lambda: told.append(len(told)))
    turns(loop, 1)  # asyncio may be told in this one, too
    del told[:]
    turns(loop, 5)
    assert told == [0, 1, 2, 3, 4]
    loop.remove_reader(left)
    loop.remove_writer(left)


def test_data_read_between_two_runs_calls_no_reader(loop: Any, ends: Pair) -> None:
    left, right = ends
    seen: list[bytes] = []
    loop.add_reader(left, seen.append, b"told")
    for part in (b"1", b"2", b"3"):
        one_run(loop)
        right.send(part)
        assert left.recv(10) == part
        turns(loop, 3)
        assert seen == []
        loop.call_soon(right.send, part)  # it arrives while the last turn of a run goes on
        turns(loop, 1)
        assert left.recv(10) == part
        turns(loop, 3)
        assert seen == []
    loop.remove_reader(left)


def test_data_read_in_the_same_turn_calls_no_reader(loop: Any, ends: Pair) -> None:
    left, right = ends
    seen: list[bytes] = []
    loop.add_reader(left, seen.append, b"told")
    server = loop.run_until_complete(loop.create_server(asyncio.Protocol, "127.0.0.1", 0))
    one_run(loop)
    read: list[bytes] = []
    loop.call_soon(right.send, b"x")
    loop.call_soon(server.close)  # the loop enters the kernel in the middle of the turn, to end the accept
    loop.call_soon(lambda: read.append(left.recv(10)))
    one_run(loop)
    assert (read, seen) == ([b"x"], [])
    loop.remove_reader(left)
    loop.run_until_complete(server.wait_closed())


def test_a_child_that_removes_a_reader_does_not_remove_the_parents(
    loop: Any, ends: Pair, engine: str
) -> None:
    if engine == "asyncio":
        pytest.skip("its child removes it from the parent's epoll")
    left, right = ends
    loop.add_reader(left, lambda: (left.recv(1), loop.stop()))
    one_run(loop)
    child = os.fork()
    if child == 0:
        try:
            loop.remove_reader(left)
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    right.send(b"x")
    loop.run_forever()
    loop.remove_reader(left)
