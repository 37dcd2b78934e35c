"""KeyboardInterrupt and SystemExit out of a protocol's callbacks leave run_forever, and when the loop runs again
nothing is lost: not the data behind, not the end of it, not the callbacks that were to follow, and connection_lost is
called once. On our own loops only: asyncio's own hangs, or fails an assertion of its own, in several of these."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.streams import BufferedRecorder, Recorder, connect, receive, turns
from tests.tls import peers


class Interrupting(Recorder):
    """Raises `what` in the callback `where`, once."""

    where = ""
    what: type[BaseException] = KeyboardInterrupt

    def interrupt(self, where: str) -> None:
        if self.where == where:
            self.where = ""
            raise self.what

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.interrupt("connection_made")

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.interrupt("data_received")

    def eof_received(self) -> bool:
        super().eof_received()
        self.interrupt("eof_received")
        return self.keep_open

    def pause_writing(self) -> None:
        super().pause_writing()
        self.interrupt("pause_writing")

    def resume_writing(self) -> None:
        super().resume_writing()
        self.interrupt("resume_writing")

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self.interrupt("connection_lost")


class BufferedInterrupting(Interrupting, BufferedRecorder):
    sizes = (7, 1, 500)

    def get_buffer(self, sizehint: int) -> bytearray | memoryview:
        buffer = super().get_buffer(sizehint)
        self.interrupt("get_buffer")
        return buffer

    def buffer_updated(self, nbytes: int) -> None:
        super().buffer_updated(nbytes)
        self.interrupt("buffer_updated")


def interrupted_in(kind: Any, where: str, what: type[BaseException] = KeyboardInterrupt) -> Any:
    return type("Interrupted", (kind,), {"where": where, "what": what})


def run_through(
    loop: Any, main: Coroutine[Any, Any, Any], what: type[BaseException] = KeyboardInterrupt
) -> int:
    """Run it to its end: how often it was interrupted."""
    interrupts = 0
    task = loop.create_task(asyncio.wait_for(main, 30))
    while True:
        try:
            loop.run_until_complete(task)
            return interrupts
        except what:
            interrupts += 1
            assert interrupts < 9


READING = [
    (Interrupting, "connection_made"),
    (Interrupting, "data_received"),
    (Interrupting, "eof_received"),
    (Interrupting, "connection_lost"),
    (BufferedInterrupting, "get_buffer"),
    (BufferedInterrupting, "buffer_updated"),
    (BufferedInterrupting, "eof_received"),
]


def told_in_order(protocol: Any) -> bool:
    """Made first and lost last, once each; no data behind the end."""
    calls = protocol.calls
    ends = calls.index("eof")
    return (
        calls[0] == "made" and calls[-1] == "lost" and calls.count("lost") == 1 and "data" not in calls[ends:]
    )


@pytest.mark.parametrize("what", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize(("kind", "where"), READING)
def test_an_interrupt_loses_no_received_data(loop: Any, kind: Any, where: str, what: Any) -> None:
    data = os.urandom(20_000)

    async def main() -> None:
        protocol, peer = await connect(interrupted_in(kind, where, what), "unix")
        with peer:
            await loop.sock_sendall(peer, data)
            peer.shutdown(socket.SHUT_WR)
            assert await protocol.lost is None
        assert protocol.received == data
        assert told_in_order(protocol)

    assert run_through(loop, main(), what) == 1


@pytest.mark.parametrize("where", ["data_received", "buffer_updated", "eof_received"])
def test_pausing_reading_after_an_interrupt_keeps_the_order(loop: Any, where: str) -> None:
    """The end is behind the data, whatever is done while the loop does not run."""
    kind = BufferedInterrupting if where == "buffer_updated" else Interrupting
    protocol, peer = loop.run_until_complete(connect(interrupted_in(kind, where), "unix"))
    data = os.urandom(20_000)
    peer.send(data)
    peer.close()
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(protocol.lost)
    protocol.transport.pause_reading()
    protocol.transport.resume_reading()
    protocol.transport.pause_reading()
    seen = len(protocol.calls)
    loop.run_until_complete(turns(5))
    assert len(protocol.calls) == seen
    protocol.transport.resume_reading()
    assert loop.run_until_complete(protocol.lost) is None
    assert protocol.received == data
    assert told_in_order(protocol)
    assert protocol.calls.count("eof") == (2 if where == "eof_received" else 1)


@pytest.mark.parametrize("where", ["data_received", "eof_received"])
def test_a_connection_can_be_aborted_after_an_interrupt(loop: Any, where: str) -> None:
    protocol, peer = loop.run_until_complete(connect(interrupted_in(Interrupting, where), "unix"))
    peer.send(b"data")
    peer.close()
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(protocol.lost)
    protocol.transport.abort()
    seen = list(protocol.calls)
    assert loop.run_until_complete(protocol.lost) is None
    assert protocol.calls == [*seen, "lost"]


def test_an_interrupt_loses_no_accepted_connection(loop: Any) -> None:
    """The first callback of each leaves the loop: those accepted with it, and after it, are served."""
    made: list[Any] = []

    def factory() -> Any:
        made.append(interrupted_in(Interrupting, "connection_made")())
        return made[-1]

    async def main() -> None:
        server = await loop.create_server(factory, "127.0.0.1", 0)
        for _ in range(2):
            clients = [socket.create_connection(server.sockets[0].getsockname()) for _ in range(3)]
            for client in clients:
                client.send(b"x")
            while len(made) < 3:
                await asyncio.sleep(0)
            for protocol in made:
                await protocol.until(1)
                protocol.transport.abort()
                await protocol.lost
            for client in clients:
                client.close()
            made.clear()
        server.close()
        await server.wait_closed()

    assert run_through(loop, main()) == 6


@pytest.mark.parametrize("last", ["close", "write_eof", "abort"])
@pytest.mark.parametrize("where", ["pause_writing", "resume_writing"])
def test_an_interrupt_loses_no_written_data_and_no_end(loop: Any, where: str, last: str) -> None:
    data = os.urandom(1 << 20)

    async def main() -> None:
        protocol, peer = await connect(interrupted_in(Interrupting, where), "unix")
        with peer:
            loop.call_soon(protocol.transport.write, data)
            await turns(3)
            if last == "abort":
                await protocol.when(lambda: protocol.flow[0] == "pause")
                protocol.where = "connection_lost"
                protocol.transport.abort()
            else:
                getattr(protocol.transport, last)()
                assert await receive(peer, 2 << 20) == data
                peer.shutdown(socket.SHUT_WR)
            assert await protocol.lost is None
        assert protocol.calls.count("lost") == 1
        assert protocol.flow == (["pause"] if last == "abort" else ["pause", "resume"])

    assert run_through(loop, main()) == (2 if (where, last) == ("pause_writing", "abort") else 1)


@pytest.mark.parametrize("family", ["tcp", "unix"])
@pytest.mark.parametrize("where", ["connection_made", "data_received", "eof_received", "connection_lost"])
def test_tls_continues_after_an_interrupt(loop: Any, where: str, family: str) -> None:
    """create_connection returns, too: connection_made is called before it does."""

    async def main() -> None:
        protocol, peer = await peers.connect(interrupted_in(Interrupting, where), family=family)
        await peer.send(b"first ")
        await peer.send(b"second")
        await peer.say_goodbye()
        peer.end()
        assert await protocol.lost is None
        peer.sock.close()
        assert protocol.received == b"first second"
        assert told_in_order(protocol)

    assert run_through(loop, main()) == 1


def test_data_written_over_tls_before_the_interrupt_is_sent(loop: Any) -> None:
    """Also where reading was paused, so that nothing more is delivered."""

    class Answering(Interrupting):
        def data_received(self, data: bytes) -> None:
            self.transport.write(b"answer to " + data)
            self.transport.pause_reading()
            super().data_received(data)

    async def main() -> None:
        protocol, peer = await peers.connect(interrupted_in(Answering, "data_received"))
        await peer.send(b"question")
        assert await peer.receive(18) == b"answer to question"
        await peers.leave(protocol, peer)

    assert run_through(loop, main()) == 1


class Endpoint(asyncio.DatagramProtocol):
    """Is interrupted in each of its callbacks that is named in `where`."""

    where: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.told: list[str] = []
        self.lost = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def tell(self, what: str) -> None:
        self.told.append(what)
        if what in self.where:
            raise KeyboardInterrupt

    def datagram_received(self, data: bytes, addr: Any) -> None:
        for _ in range(3):
            self.transport.sendto(b"answer", ("255.255.255.255", 9))  # is refused
        self.tell("received")

    def error_received(self, error: Exception) -> None:
        self.tell("error")

    def resume_writing(self) -> None:
        self.tell("resumed")

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set_result(error)
        self.tell("lost")


def test_an_interrupt_loses_no_error_of_an_endpoint(loop: Any) -> None:
    async def main() -> Any:
        kind = type("Kind", (Endpoint,), {"where": ("received", "error", "lost")})
        transport, protocol = await loop.create_datagram_endpoint(kind, local_addr=("127.0.0.1", 0))
        transport.sendto(b"x", transport.get_extra_info("sockname"))
        while protocol.told.count("error") < 3:
            await asyncio.sleep(0)
        transport.close()
        await protocol.lost
        return protocol.told

    assert run_through(loop, main()) == 4  # of the first two callbacks at once


@pytest.mark.parametrize("where", ["resumed", "error"])
def test_an_interrupt_does_not_stop_the_close_of_an_endpoint_with_queued_data(
    loop: Any, where: str, tmp_path: Path
) -> None:
    async def main() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as peer:
            peer.bind(str(tmp_path / "peer"))
            kind = type("Kind", (Endpoint,), {"where": (where,)})
            transport, protocol = await loop.create_datagram_endpoint(
                kind, remote_addr=str(tmp_path / "peer"), family=socket.AF_UNIX
            )
            transport.set_write_buffer_limits(high=1000)
            while transport.get_write_buffer_size() < 2000:
                transport.sendto(bytes(500))
            transport.close()
            if where == "resumed":
                peer.setblocking(False)
                while not protocol.lost.done():
                    try:
                        peer.recv(1000)
                    except BlockingIOError:
                        await asyncio.sleep(0)
        await protocol.lost  # with the peer gone, what is left is refused
        assert protocol.told.count("lost") == 1

    assert run_through(loop, main()) >= 1
