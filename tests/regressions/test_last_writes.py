"""What a program wrote arrives, however its loop ends: before SystemExit, between two runs, with loop.close(). asyncio
sends within write(); here a write waits for the end of its turn, so each way out of a turn has to send it."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.streams import Recorder, connect, pair
from tests.tls import peers

KINDS = ["tcp", "unix", "tls", "tls over tls", "pipe"]
PATIENCE = 10
# The fake one says now and then that a socket is full which is not.
real_kernels = pytest.mark.engines("uring", "epoll", "asyncio")


class Connection:
    """A transport of a loop that does not run, and a blocking way to read what arrives at its other end."""

    def __init__(self, loop: Any, kind: str) -> None:
        self.loop = loop
        self.layers: list[peers.Peer] = []
        loop.run_until_complete(asyncio.wait_for(self.open(kind), PATIENCE))

    async def open(self, kind: str) -> None:
        if kind == "pipe":
            reading, writing = os.pipe()
            self.sock: Any = None
            self.reading = os.fdopen(reading, "rb", buffering=0)
            os.set_blocking(reading, False)
            self.transport, _ = await self.loop.connect_write_pipe(
                asyncio.BaseProtocol, os.fdopen(writing, "wb", buffering=0)
            )
        elif kind.startswith("tls"):
            protocol, peer = await peers.connect()
            self.transport, self.sock, self.layers = protocol.transport, peer.sock, [peer]
            if kind == "tls over tls":
                await self.add_layer(peer)
        else:
            protocol, self.sock = await connect(family=kind)
            self.transport = protocol.transport
        if self.sock is not None:
            self.sock.settimeout(PATIENCE)

    async def add_layer(self, below: peers.Peer) -> None:
        above = peers.Peer(below.sock, peers.server_context(), True)

        async def push() -> None:
            if above.outgoing.pending:
                await below.send(above.outgoing.read())

        async def arrival() -> bytes:
            return await below.do(below.tls.read, 1 << 16)  # type: ignore[no-any-return]

        above.push, above.arrival = push, arrival  # type: ignore[method-assign]
        handshake = asyncio.ensure_future(above.handshake())
        self.transport = await self.loop.start_tls(
            self.transport, Recorder(), peers.client_context(), server_hostname="localhost"
        )
        await handshake
        self.layers.append(above)

    def arrived(self, size: int) -> bytes:
        if self.sock is None:
            return self.reading.read(size) or b"nothing"
        if not self.layers:
            return self.sock.recv(size)  # type: ignore[no-any-return]
        return self.decrypted(len(self.layers) - 1, size)

    def decrypted(self, layer: int, size: int) -> bytes:
        peer = self.layers[layer]
        while True:
            try:
                return peer.tls.read(size)
            except peers.ssl.SSLWantReadError:
                below = self.decrypted(layer - 1, 1 << 16) if layer else self.sock.recv(1 << 16)
                assert below, "the end came first"
                peer.incoming.write(below)

    def leave(self) -> None:
        (self.sock or self.reading).close()
        if not self.loop.is_closed():
            if not self.transport.is_closing():
                self.transport.abort()
            self.loop.run_until_complete(asyncio.sleep(0.01))


@contextmanager
def abandoned() -> Iterator[None]:
    """What was not closed may be said, and ends here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


def run_and_leave(loop: Any, callback: Callable[[], None], error: type[BaseException]) -> None:
    def raising() -> None:
        callback()
        raise error

    loop.call_soon(raising)
    with pytest.raises(error):
        loop.run_forever()


@real_kernels
@pytest.mark.contract
@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("kind", KINDS)
def test_data_written_before_an_exit_arrives(loop: Any, kind: str, error: type[BaseException]) -> None:
    connection = Connection(loop, kind)
    run_and_leave(loop, lambda: connection.transport.write(b"goodbye"), error)
    assert connection.arrived(100) == b"goodbye"
    connection.leave()


@real_kernels
@pytest.mark.contract
@pytest.mark.parametrize("kind", KINDS)
def test_data_written_in_the_last_turn_arrives(loop: Any, kind: str) -> None:
    connection = Connection(loop, kind)
    loop.call_soon(lambda: (connection.transport.write(b"goodbye"), loop.stop()))
    loop.run_forever()
    assert connection.arrived(100) == b"goodbye"
    connection.leave()


@pytest.mark.contract
@pytest.mark.parametrize("kind", KINDS)
def test_data_written_between_two_runs_arrives(loop: Any, kind: str) -> None:
    connection = Connection(loop, kind)
    connection.transport.write(b"hello")
    assert connection.arrived(100) == b"hello"
    connection.transport.writelines([b"hello", b""])
    assert connection.arrived(100) == b"hello"
    connection.leave()


@pytest.mark.contract
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_data_written_before_the_loop_is_closed_arrives(
    new_loop: Callable[[], Any], kind: str, elsewhere: bool
) -> None:
    """Closed by the thread that ran it, or by another."""
    with abandoned():
        made: list[Connection] = []

        def work() -> None:
            loop = new_loop()
            made.append(Connection(loop, kind))
            run_and_leave(loop, lambda: made[0].transport.write(b"last words"), SystemExit)
            if not elsewhere:
                loop.close()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        made[0].loop.close()
        assert made[0].arrived(100) == b"last words"
        made.pop().leave()


@pytest.mark.contract
@pytest.mark.parametrize("kind", ["tcp", "unix", "tls"])
def test_data_written_after_the_loop_was_closed_arrives(loop: Any, kind: str) -> None:
    with abandoned():
        connection = Connection(loop, kind)
        loop.close()
        connection.transport.write(b"late")
        assert connection.arrived(100) == b"late"
        connection.leave()
        del connection


@pytest.mark.contract
@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_data_lost_by_closing_the_loop_is_reported(loop: Any, kind: str) -> None:
    """As asyncio tells it: by the transport that was never closed."""
    connection = Connection(loop, kind)
    data = os.urandom(1 << 16) * 128
    run_and_leave(loop, lambda: connection.transport.write(data), SystemExit)
    loop.close()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        del connection.transport
        gc.collect()
    assert any(str(warning.message).startswith("unclosed transport") for warning in told)
    got = b"".join(iter(lambda: connection.sock.recv(1 << 20), b""))
    assert 0 < len(got) < len(data)
    assert data.startswith(got)
    connection.sock.close()


@pytest.mark.contract
def test_data_written_by_runs_in_two_threads_arrives_once(new_loop: Callable[[], Any]) -> None:
    """The send is in the kernel, with the socket full, when the loop moves to another thread; and again when a third
    one closes it."""
    data = os.urandom(1 << 20)
    with abandoned():
        left, right = pair("unix")
        right.settimeout(PATIENCE)
        loop = new_loop()
        made: list[Any] = []

        def begin() -> None:
            transport, _ = loop.run_until_complete(loop.create_unix_connection(asyncio.Protocol, sock=left))
            made.append(transport)
            transport.write(data)
            loop.run_until_complete(asyncio.sleep(0.01))

        def go_on() -> None:
            made[0].write(data)
            loop.run_until_complete(asyncio.sleep(0.01))

        got = bytearray()
        for step in (begin, go_on, go_on, loop.close):
            thread = threading.Thread(target=step)
            thread.start()
            thread.join()
            got += right.recv(100_000)
        made.clear()
        gc.collect()
        while more := right.recv(1 << 20):
            got += more
        right.close()
        assert (data * 3).startswith(bytes(got))
        assert len(got) > 300_000


EXITING = """
import asyncio, socket, sys, threading, uringloop
keep = []
def work():
    loop = asyncio.new_event_loop() if sys.argv[1] == "asyncio" else uringloop.new_event_loop()
    sock = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    transport, _ = loop.run_until_complete(loop.create_connection(asyncio.Protocol, sock=sock))
    keep.extend([loop, transport])
    def last():
        transport.write(b"goodbye")
        raise SystemExit
    loop.call_soon(last)
    loop.run_forever()
if sys.argv[3] == "main":
    work()
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


@pytest.mark.contract
@pytest.mark.parametrize("thread", ["main", "another"])
def test_data_written_before_the_interpreter_ends_arrives(engine: str, program: Any, thread: str) -> None:
    """Its loop is never closed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        program(EXITING, engine, str(listener.getsockname()[1]), thread)
        peer, _ = listener.accept()
        with peer:
            peer.settimeout(PATIENCE)
            assert peer.recv(100) == b"goodbye"


@pytest.mark.contract
def test_a_datagram_sent_before_an_exit_or_between_two_runs_arrives(loop: Any) -> None:
    class Answering(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, address: Any) -> None:
            transport.sendto(b"answer", address)
            raise SystemExit

    transport, _ = loop.run_until_complete(
        loop.create_datagram_endpoint(Answering, local_addr=("127.0.0.1", 0))
    )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.settimeout(PATIENCE)
        peer.connect(transport.get_extra_info("sockname"))
        peer.send(b"question")
        with pytest.raises(SystemExit):
            loop.run_until_complete(asyncio.sleep(PATIENCE))
        assert peer.recv(100) == b"answer"
        transport.sendto(b"between", peer.getsockname())
        assert peer.recv(100) == b"between"
        transport.sendto(b"last", peer.getsockname())
        transport.close()
        loop.run_until_complete(asyncio.sleep(0.01))
        assert peer.recv(100) == b"last"


@pytest.mark.contract
@pytest.mark.parametrize("kind", ["tcp", "unix", "tls"])
def test_a_write_after_close_is_dropped(loop: Any, kind: str) -> None:
    connection = Connection(loop, kind)

    async def main() -> None:
        connection.transport.write(b"first")
        connection.transport.close()
        connection.transport.write(b"second")
        if kind != "tls":
            assert connection.transport.get_write_buffer_size() == 0
        await asyncio.sleep(0.01)

    loop.run_until_complete(main())
    assert connection.arrived(100) == b"first"
    assert connection.arrived(100) == b""
    connection.leave()


@pytest.mark.contract
def test_a_write_after_close_follows_a_backlog(loop: Any) -> None:
    """asyncio's loop drops what is written after close() only where nothing was left to send."""
    connection = Connection(loop, "unix")
    data = bytes(3 << 20)

    async def main() -> int:
        connection.transport.write(data)
        connection.transport.close()
        connection.transport.write(b"second")
        connection.sock.setblocking(False)
        size = 0
        while part := await loop.sock_recv(connection.sock, 1 << 20):
            size += len(part)
        return size

    assert loop.run_until_complete(main()) == len(data) + len(b"second")
    connection.leave()


@pytest.mark.contract
@pytest.mark.parametrize("kind", ["tcp", "unix", "tls"])
def test_data_written_by_a_long_callback_leaves_while_it_works(loop: Any, kind: str) -> None:
    connection = Connection(loop, kind)

    async def main() -> None:
        connection.transport.write(b"0% ")  # may wait for the end of the turn
        for percent in (b"50% ", b"100%"):
            time.sleep(0.05)
            connection.transport.write(percent)
            got = bytearray()
            while not got.endswith(percent):
                got += connection.arrived(100)

    loop.run_until_complete(main())
    connection.leave()


@real_kernels
@pytest.mark.contract
@pytest.mark.parametrize("kind", ["tcp", "unix", "tls"])
def test_data_written_in_a_turn_leaves_before_the_next_turn(loop: Any, kind: str) -> None:
    """The rule for who writes and then works long, or blocks: let the loop turn once."""
    connection = Connection(loop, kind)

    async def main() -> None:
        connection.transport.write(b"working")
        await asyncio.sleep(0)
        assert connection.arrived(100) == b"working"

    loop.run_until_complete(main())
    connection.leave()


@real_kernels
def test_data_written_in_one_turn_leaves_in_one_send(loop: Any) -> None:
    connection = Connection(loop, "unix")

    async def main() -> None:
        for _ in range(3):
            connection.transport.write(b"x")

    loop.run_until_complete(main())
    assert connection.arrived(100) == b"xxx"
    connection.leave()
