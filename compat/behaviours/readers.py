"""add_reader and add_writer."""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
from typing import Any

from compat.behaviours import check
from compat.behaviours.helpers import pair, raises, soon, until

READERS = "add_reader/add_writer by fd and by object, bool results"


@check(READERS)
async def reader_by_number_and_by_object() -> None:
    loop: Any = asyncio.get_running_loop()
    left, right = socket.socketpair()
    with left, right:
        right.setblocking(False)
        seen: list[bytes] = []
        for handle in (right, right.fileno()):
            seen.clear()
            assert loop.add_reader(handle, lambda: seen.append(right.recv(10))) is None
            left.send(b"x")
            await until(lambda: seen == [b"x"])
            left.send(b"y")
            await until(lambda: seen == [b"x", b"y"])
            assert loop.remove_reader(handle) is True
            assert loop.remove_reader(handle) is False
            left.send(b"z")
            await asyncio.sleep(0.02)
            assert seen == [b"x", b"y"]
            assert right.recv(10) == b"z"


@check(READERS)
async def writer_is_called_while_there_is_room() -> None:
    loop: Any = asyncio.get_running_loop()
    left, right = socket.socketpair()
    with left, right:
        left.setblocking(False)
        calls: list[int] = []

        def fill() -> None:
            try:
                calls.append(left.send(bytes(65536)))
            except BlockingIOError:
                calls.append(-1)

        loop.add_writer(left, fill)
        full = -1
        while full != len(calls) or not calls:
            full = len(calls)
            await asyncio.sleep(0.05)
        count = sum(call for call in calls if call > 0)
        while count > 0:
            count -= len(right.recv(1 << 20))
        await until(lambda: len(calls) > full)
        assert loop.remove_writer(left) is True
        assert loop.remove_writer(left.fileno()) is False


@check(READERS)
async def reader_is_level_triggered() -> None:
    loop: Any = asyncio.get_running_loop()
    left, right = socket.socketpair()
    with left, right:
        taken: list[bytes] = []
        loop.add_reader(right, lambda: taken.append(right.recv(1)))
        left.send(b"12345")
        await until(lambda: len(taken) == 5)
        left.close()
        await until(lambda: len(taken) > 6)
        assert taken[5] == b""
        loop.remove_reader(right)


@check(READERS)
async def second_reader_replaces_the_first() -> None:
    loop: Any = asyncio.get_running_loop()
    left, right = socket.socketpair()
    with left, right:
        seen: list[str] = []

        def take(name: str) -> None:
            right.recv(10)
            seen.append(name)

        loop.add_reader(right, take, "first")
        loop.add_reader(right, take, "second")
        left.send(b"x")
        await until(lambda: seen)
        assert seen == ["second"]
        loop.remove_reader(right)


@check(READERS)
async def reader_and_writer_share_a_descriptor() -> None:
    loop: Any = asyncio.get_running_loop()
    left, right = socket.socketpair()
    with left, right:
        seen: list[str] = []

        def readable() -> None:
            seen.append("read " + right.recv(10).decode())

        def writable() -> None:
            seen.append("write")
            loop.remove_writer(right)

        loop.add_reader(right, readable)
        loop.add_writer(right, writable)
        await until(lambda: seen == ["write"])
        left.send(b"x")
        await until(lambda: seen == ["write", "read x"])
        loop.add_writer(right, writable)
        await until(lambda: seen[-1] == "write")
        loop.remove_reader(right)


@check(READERS)
async def reader_of_pipes_and_eventfds() -> None:
    loop: Any = asyncio.get_running_loop()
    read, write = os.pipe()
    event = os.eventfd(0)
    woken: asyncio.Future[int] = loop.create_future()
    loop.add_reader(event, lambda: woken.done() or woken.set_result(os.eventfd_read(event)))
    piped: asyncio.Future[bytes] = loop.create_future()
    loop.add_reader(read, lambda: piped.done() or piped.set_result(os.read(read, 10)))
    os.eventfd_write(event, 3)
    os.write(write, b"pipe")
    assert await soon(woken) == 3
    assert await soon(piped) == b"pipe"
    for fd in (read, event):
        loop.remove_reader(fd)
    for fd in (read, write, event):
        os.close(fd)


@check(READERS)
async def descriptor_of_a_transport_is_refused() -> None:
    loop: Any = asyncio.get_running_loop()
    async with pair() as both:
        number = both.client.get_extra_info("socket").fileno()
        raises(RuntimeError, loop.add_reader, number, int)
        raises(RuntimeError, loop.add_writer, number, int)
        raises(RuntimeError, loop.remove_reader, number)
        raises(RuntimeError, loop.remove_writer, number)


@check(READERS)
async def wrong_descriptors_are_refused() -> None:
    loop: Any = asyncio.get_running_loop()
    raises(ValueError, loop.add_reader, -1, int)
    raises(ValueError, loop.add_reader, "text", int)
    raises(ValueError, loop.remove_reader, object())


@check(READERS)
async def add_reader_leaves_the_blocking_mode_alone() -> None:
    loop: Any = asyncio.get_running_loop()
    left, right = socket.socketpair()
    with left, right:
        before = fcntl.fcntl(right, fcntl.F_GETFL)
        loop.add_reader(right, int)
        loop.add_writer(right, int)
        await asyncio.sleep(0.01)
        assert fcntl.fcntl(right, fcntl.F_GETFL) == before
        loop.remove_reader(right)
        loop.remove_writer(right)
        assert fcntl.fcntl(right, fcntl.F_GETFL) == before


@check(READERS)
async def error_in_a_reader_is_reported_and_it_stays() -> None:
    loop: Any = asyncio.get_running_loop()
    contexts: list[Any] = []
    loop.set_exception_handler(lambda _, context: contexts.append(context))
    left, right = socket.socketpair()
    with left, right:

        def fail() -> None:
            right.recv(10)
            raise LookupError("reader")

        loop.add_reader(right, fail)
        for count in (1, 2):
            left.send(b"x")
            await until(lambda wanted=count: len(contexts) == wanted)  # type: ignore[misc]
        loop.remove_reader(right)
    loop.set_exception_handler(None)
