"""Defects reported against other loops: descriptors closed twice, or remembered for too long."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.streams import Recorder, connect, pair, settled, turns

pytestmark = pytest.mark.contract


@pytest.fixture
def run(loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
    return lambda main: loop.run_until_complete(asyncio.wait_for(main, 30))


class Strangers:
    """Descriptors that take every number that has just become free: whoever closes one of theirs is found out."""

    def __init__(self, *numbers: int) -> None:
        self.made = {os.open("/dev/null", os.O_RDONLY)}
        while not self.made.issuperset(numbers):
            self.made.add(os.dup(min(self.made)))
        self.file = os.fstat(min(self.made))

    def leave(self) -> None:
        """Unharmed."""
        for number in self.made:
            there = os.fstat(number)
            assert (there.st_dev, there.st_ino) == (self.file.st_dev, self.file.st_ino), number
            os.close(number)


class Remembered:
    """A factory of protocols that can be asked which it made."""

    def __init__(self) -> None:
        self.made: list[Recorder] = []

    def __call__(self) -> Recorder:
        self.made.append(Recorder())
        return self.made[-1]

    async def gone(self) -> None:
        await turns()
        for protocol in self.made:
            if "made" in protocol.calls:
                await protocol.lost


async def cancelled(making: Any, after: int) -> None:
    """Begin it, and cancel it so many turns later, at whatever it has come to by then."""
    task = asyncio.ensure_future(making)
    await turns(after)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        transport, _ = await task
        transport.close()


async def free(number: int) -> None:
    """Wait until the kernel has closed the descriptor of this number, which it may do after the loop's close()."""
    while os.path.exists(f"/proc/self/fd/{number}"):
        await asyncio.sleep(0)


@pytest.mark.parametrize("after", range(6))
@pytest.mark.parametrize("kind", ["connection", "accepted", "unix"])
def test_a_cancelled_connection_of_a_given_socket_closes_it_once(run: Any, kind: str, after: int) -> None:
    """uvloop #738 #764: the socket's number was closed by the transport and by the caller, who killed a stranger's."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        left, right = pair("unix" if kind == "unix" else "tcp")
        number, factory = left.fileno(), Remembered()
        make: Any = {
            "connection": loop.create_connection,
            "accepted": lambda factory, sock: loop.connect_accepted_socket(factory, sock),
            "unix": loop.create_unix_connection,
        }[kind]
        await cancelled(make(factory, sock=left), after)
        await factory.gone()
        left.close()
        await free(number)
        strangers = Strangers(number)
        del left, factory
        await settled(right)
        strangers.leave()
        right.close()

    run(main())


@pytest.mark.parametrize("after", range(6))
@pytest.mark.parametrize("end", ["reader", "writer"])
def test_a_cancelled_connection_of_a_pipe_closes_it_once(run: Any, end: str, after: int) -> None:
    """uvloop #740 #763: connect_read_pipe closed the number, and the file object closed it again."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        read, write = os.pipe()
        ours, other = (read, write) if end == "reader" else (write, read)
        pipe = os.fdopen(ours, "rb" if end == "reader" else "wb", 0)
        connect_pipe: Any = loop.connect_read_pipe if end == "reader" else loop.connect_write_pipe
        factory = Remembered()
        await cancelled(connect_pipe(factory, pipe), after)
        await factory.gone()
        pipe.close()
        await free(ours)
        strangers = Strangers(ours)
        del pipe, factory
        await settled(None)
        strangers.leave()
        os.close(other)

    run(main())


@pytest.fixture
def full() -> Iterator[tuple[str, int]]:
    """The address of a listener that answers no further connection."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        with socket.create_connection(listener.getsockname()):
            yield listener.getsockname()


def test_a_transport_can_use_the_number_of_a_cancelled_sock_connect(run: Any, full: tuple[str, int]) -> None:
    """uvloop #653, aiohappyeyeballs #93 #105: "File descriptor N is used by transport", from then on."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        client = socket.socket()
        client.setblocking(False)
        number = client.fileno()
        connecting = asyncio.ensure_future(loop.sock_connect(client, full))
        await settled(None)
        assert not connecting.done()
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        assert loop.remove_writer(number) is False
        client.close()
        left, right = pair("unix")
        with right:
            again = left if left.fileno() == number else socket.socket(fileno=os.dup(left.detach()))
            _, protocol = await loop.create_unix_connection(Recorder, sock=again)
            await loop.sock_sendall(right, b"fresh")
            assert await protocol.until(5) == b"fresh"
            protocol.transport.abort()
            await protocol.lost

    run(main())


@pytest.mark.parametrize("count", [1, 20])
def test_cancelled_connections_by_host_leave_no_descriptor(
    run: Any, full: tuple[str, int], count: int
) -> None:
    """The same for create_connection, which makes the socket itself: the teardown counts descriptors."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        tasks = [asyncio.ensure_future(loop.create_connection(Recorder, *full)) for _ in range(count)]
        await settled(None)
        for task in tasks:
            assert not task.done()
            task.cancel()
        await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks)
        protocol, right = await connect()
        await loop.sock_sendall(right, b"fresh")
        assert await protocol.until(5) == b"fresh"
        protocol.transport.abort()
        await protocol.lost
        right.close()

    run(main())


def test_a_reader_and_a_writer_on_duplicates_are_both_called(run: Any) -> None:
    """uvloop aborted the process where two descriptors shared one description."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        left, right = pair("unix")
        again = left.dup()
        readable, writable = loop.create_future(), loop.create_future()
        loop.add_reader(left, lambda: readable.done() or readable.set_result(left.recv(10)))
        loop.add_writer(again, lambda: writable.done() or writable.set_result(again.send(b"out")))
        right.send(b"in")
        assert await readable == b"in"
        assert await writable == 3
        assert loop.remove_reader(left) and loop.remove_writer(again)
        again.close()
        later = loop.create_future()
        loop.add_reader(left, lambda: later.done() or later.set_result(left.recv(10)))
        right.send(b"later")
        assert await later == b"later"
        loop.remove_reader(left)
        left.close()
        right.close()

    run(main())


def test_a_reading_and_a_writing_pipe_share_a_terminal(run: Any) -> None:
    """The same with transports, as a program has its terminal as standard input and output."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        left, right = pair("unix")
        reading, _ = await loop.connect_read_pipe(Recorder, socket.socket(fileno=os.dup(left.fileno())))
        reader: Any = reading.get_protocol()
        writing, _ = await loop.connect_write_pipe(Recorder, left)
        writer: Any = writing.get_protocol()
        writing.write(b"out")
        assert await loop.sock_recv(right, 10) == b"out"
        writing.close()
        assert await writer.lost is None
        await loop.sock_sendall(right, b"in")
        assert await reader.until(2) == b"in"
        reading.close()
        assert await reader.lost is None
        right.close()

    run(main())


@pytest.mark.parametrize("accepting", [False, True])
def test_a_closed_server_refuses_connections_at_once(run: Any, accepting: bool) -> None:
    """rloop: listeners went on accepting after Server.close()."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0, start_serving=accepting)
        address = server.sockets[0].getsockname()
        if accepting:
            await settled(None)
        server.close()
        with socket.socket() as client, pytest.raises(ConnectionRefusedError):
            client.connect(address)
        await server.wait_closed()

    run(main())


def test_programs_can_set_attributes_on_a_loop(loop: Any) -> None:
    """Programs and CPython's own tests set some on the loop; uvloop's and others' had no room for them."""
    loop.of_a_program = 1
    assert loop.of_a_program == 1
    seen: list[object] = []
    loop.call_exception_handler = seen.append
    loop.call_soon(lambda: 1 / 0)
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert len(seen) == 1
