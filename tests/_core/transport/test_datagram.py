"""Datagram transports: what asyncio promises of them, and the batches behind."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import gc
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.datagrams import Echo, Endpoints, Recorder, run_with_endpoints


@pytest.fixture
def run(loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
    return functools.partial(run_with_endpoints, loop)


@pytest.fixture
def nobody() -> Any:
    """An address where nobody listens."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gone:
        gone.bind(("127.0.0.1", 0))
        return gone.getsockname()


@pytest.mark.contract
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_endpoints_send_and_receive_datagrams(run: Any, host: str) -> None:
    async def main(endpoints: Endpoints) -> None:
        server = await endpoints.make(Echo, local_addr=(host, 0))
        address = server.transport.get_extra_info("sockname")
        client = await endpoints.make(remote_addr=address[:2])
        free = await endpoints.make(local_addr=(host, 0))
        assert isinstance(client.transport, asyncio.Transport | asyncio.DatagramTransport)
        assert client.transport.get_extra_info("peername") == address
        assert server.transport.get_extra_info("peername") is None
        assert (
            client.transport.get_extra_info("socket").family
            == server.transport.get_extra_info("socket").family
        )
        client.transport.sendto(b"connected")
        free.transport.sendto(b"free", address)
        await server.until(lambda: len(server.received) == 2)
        await client.until(lambda: client.received)
        await free.until(lambda: free.received)
        assert client.received == [(b"connected", address)]
        assert free.received == [(b"free", address)]
        names = [end.transport.get_extra_info("sockname") for end in (client, free)]
        assert server.received == [(b"connected", names[0]), (b"free", names[1])]

    run(main)


def test_empty_datagrams_arrive(run: Any) -> None:
    """Stock asyncio drops them before 3.13."""

    async def main(endpoints: Endpoints) -> None:
        server = await endpoints.make(Echo, local_addr=("127.0.0.1", 0))
        client = await endpoints.make(remote_addr=server.transport.get_extra_info("sockname"))
        client.transport.sendto(b"")
        client.transport.sendto(bytearray())
        await client.until(lambda: len(client.received) == 2)
        assert [data for data, _ in client.received] == [b"", b""]

    run(main)


@pytest.mark.contract
def test_a_burst_arrives_whole_and_in_order(run: Any) -> None:
    """More than any batch holds, to one and the same peer and to many."""

    async def main(endpoints: Endpoints) -> None:
        server = await endpoints.make(Echo, local_addr=("127.0.0.1", 0))
        server.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        address = server.transport.get_extra_info("sockname")
        clients = [await endpoints.make(remote_addr=address) for _ in range(5)]
        expected = [b"%d" % i for i in range(40)]
        for data in expected:
            for client in clients:
                client.transport.sendto(data)
        for client in clients:
            await client.until(lambda client=client: len(client.received) == len(expected))
            assert [data for data, _ in client.received] == expected

    run(main)


@pytest.mark.contract
@pytest.mark.parametrize("size", [1, 1472, 9000, 65_507])
def test_udp_datagrams_of_any_size_arrive(run: Any, size: int) -> None:
    async def main(endpoints: Endpoints) -> None:
        server = await endpoints.make(Echo, local_addr=("127.0.0.1", 0))
        client = await endpoints.make(remote_addr=server.transport.get_extra_info("sockname"))
        data = os.urandom(size)
        client.transport.sendto(data)
        await client.until(lambda: client.received)
        assert client.received[0][0] == data

    run(main)


@pytest.mark.contract
def test_a_too_large_datagram_is_reported_and_the_endpoint_stays_open(run: Any) -> None:
    async def main(endpoints: Endpoints) -> None:
        server = await endpoints.make(Echo, local_addr=("127.0.0.1", 0))
        address = server.transport.get_extra_info("sockname")
        client = await endpoints.make(local_addr=("127.0.0.1", 0))
        client.transport.sendto(b"x" * 70_000, address)
        assert [error.errno for error in client.errors] == [90]
        client.transport.sendto(b"small", address)
        await client.until(lambda: client.received)
        assert not client.transport.is_closing()

    run(main)


@pytest.mark.contract
def test_a_too_large_answer_is_reported_and_the_other_answers_are_sent(run: Any) -> None:
    class Blowing(Recorder):
        def datagram_received(self, data: bytes, addr: Any) -> None:
            super().datagram_received(data, addr)
            self.transport.sendto(data * 70_000 if data == b"L" else data, addr)

    async def main(endpoints: Endpoints) -> None:
        server = await endpoints.make(Blowing, local_addr=("127.0.0.1", 0))
        client = await endpoints.make(remote_addr=server.transport.get_extra_info("sockname"))
        for data in (b"1", b"L", b"2", b"L", b"3"):
            client.transport.sendto(data)
        await client.until(lambda: len(client.received) == 3)
        assert [data for data, _ in client.received] == [b"1", b"2", b"3"]
        assert [error.errno for error in server.errors] == [90, 90]

    run(main)


@pytest.mark.contract
def test_a_refused_datagram_is_reported_and_the_endpoint_stays_open(run: Any, nobody: Any) -> None:
    async def main(endpoints: Endpoints) -> None:
        client = await endpoints.make(remote_addr=nobody)
        for _ in range(3):
            client.errors.clear()
            client.transport.sendto(b"to nobody")
            await client.until(lambda: client.errors)
            assert isinstance(client.errors[0], ConnectionRefusedError)
        assert not client.transport.is_closing()

    run(main)


@pytest.mark.contract
def test_error_received_may_close_the_endpoint(run: Any, nobody: Any) -> None:
    class Closing(Recorder):
        def error_received(self, error: Exception) -> None:
            super().error_received(error)
            self.transport.close()

    async def main(endpoints: Endpoints) -> None:
        client = await endpoints.make(Closing, remote_addr=nobody)
        client.transport.sendto(b"to nobody")
        assert await client.lost is None

    run(main)


@pytest.mark.contract
def test_a_connected_endpoint_sends_to_its_remote_address_only(run: Any) -> None:
    async def main(endpoints: Endpoints) -> None:
        server = await endpoints.make(local_addr=("127.0.0.1", 0))
        address = server.transport.get_extra_info("sockname")
        client = await endpoints.make(remote_addr=address)
        client.transport.sendto(b"same", address)
        with pytest.raises(ValueError, match="Invalid address: must be None or"):
            client.transport.sendto(b"other", ("127.0.0.1", 1))
        await server.until(lambda: server.received)

    run(main)


@pytest.mark.contract
@pytest.mark.parametrize("data", ["text", 5, None, [b"x"]])
def test_sendto_raises_type_error_for_data_that_is_not_bytes(run: Any, data: Any) -> None:
    async def main(endpoints: Endpoints) -> None:
        client = await endpoints.make(local_addr=("127.0.0.1", 0))
        with pytest.raises(TypeError, match="data argument must be a bytes-like object"):
            client.transport.sendto(data, ("127.0.0.1", 1))

    run(main)


@pytest.mark.contract
def test_sendto_accepts_a_host_name(run: Any) -> None:
    async def main(endpoints: Endpoints) -> None:
        server = await endpoints.make(local_addr=("127.0.0.1", 0))
        client = await endpoints.make(local_addr=("127.0.0.1", 0))
        client.transport.sendto(b"by name", ("localhost", server.transport.get_extra_info("sockname")[1]))
        await server.until(lambda: server.received)

    run(main)


@pytest.mark.contract
def test_an_endpoint_sends_to_the_broadcast_address(run: Any) -> None:
    async def main(endpoints: Endpoints) -> None:
        client = await endpoints.make(local_addr=("127.0.0.1", 0), allow_broadcast=True)
        assert client.transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST)
        client.transport.sendto(b"to all", ("<broadcast>", 9))
        assert all(isinstance(error, OSError) for error in client.errors)
        assert not client.transport.is_closing()

    run(main)


@pytest.mark.contract
def test_unix_endpoints_send_and_receive_datagrams(run: Any, tmp_path: Path) -> None:
    here, there = str(tmp_path / "here"), str(tmp_path / "there")

    async def main(endpoints: Endpoints) -> None:
        server = await endpoints.make(Echo, local_addr=there, family=socket.AF_UNIX)
        client = await endpoints.make(local_addr=here, remote_addr=there, family=socket.AF_UNIX)
        for size in (1, 100_000):
            client.transport.sendto(b"x" * size)
        await client.until(lambda: len(client.received) == 2)
        assert [(len(data), address) for data, address in client.received] == [(1, there), (100_000, there)]
        assert [address for _, address in server.received] == [here, here]

    run(main)


@pytest.mark.contract
def test_an_unnamed_unix_sender_has_no_address(run: Any, tmp_path: Path) -> None:
    async def main(endpoints: Endpoints) -> None:
        server = await endpoints.make(local_addr=str(tmp_path / "there"), family=socket.AF_UNIX)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.sendto(b"who", str(tmp_path / "there"))
        await server.until(lambda: server.received)
        assert server.received == [(b"who", None)]

    run(main)


@pytest.mark.parametrize("connected", [True, False])
# Not on stock asyncio: 3.13.0 counts a header of 16 bytes with each datagram.
def test_a_full_socket_queues_datagrams_and_pauses_the_writer(
    run: Any, tmp_path: Path, connected: bool
) -> None:
    """A Unix datagram socket is full when its peer's queue is."""
    there = str(tmp_path / "there")

    async def main(endpoints: Endpoints) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as peer:
            peer.bind(there)
            peer.setblocking(False)
            options = {"remote_addr": there} if connected else {"local_addr": str(tmp_path / "here")}
            client = await endpoints.make(family=socket.AF_UNIX, **options)
            client.transport.set_write_buffer_limits(high=1000, low=100)
            data = bytearray(500)
            count = 0
            while client.flow != ["pause"]:
                data[0] = count % 256
                client.transport.sendto(data, None if connected else there)
                count += 1
            assert client.transport.get_write_buffer_size() > 1000
            received = []
            while len(received) < count:
                try:
                    received.append(peer.recv(1000)[0])
                except BlockingIOError:
                    await asyncio.sleep(0)
            assert received == [i % 256 for i in range(count)]
            await asyncio.sleep(0)
            assert client.flow == ["pause", "resume"]
            assert client.transport.get_write_buffer_size() == 0

    run(main)


@pytest.mark.contract
def test_close_sends_queued_datagrams_and_abort_drops_them(run: Any, tmp_path: Path) -> None:
    there = str(tmp_path / "there")

    async def main(endpoints: Endpoints) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as peer:
            peer.bind(there)
            peer.setblocking(False)
            for end in ("close", "abort"):
                client = await endpoints.make(family=socket.AF_UNIX, remote_addr=there)
                count = 0
                while not client.transport.get_write_buffer_size():
                    client.transport.sendto(b"x" * 500)
                    count += 1
                getattr(client.transport, end)()
                assert client.transport.is_closing()
                received = 0
                while not client.lost.done() or received < count:
                    try:
                        peer.recv(1000)
                        received += 1
                    except BlockingIOError:
                        if client.lost.done():
                            break
                        await asyncio.sleep(0)
                assert received == (count if end == "close" else count - 1)
                assert client.lost.result() is None

    run(main)


def test_sendto_after_close_is_ignored(run: Any) -> None:
    """Stock asyncio raises AttributeError before 3.12."""

    async def main(endpoints: Endpoints) -> None:
        client = await endpoints.make(local_addr=("127.0.0.1", 0))
        client.transport.close()
        await client.lost
        client.transport.sendto(b"afterwards", ("127.0.0.1", 9))
        assert client.errors == []

    run(main)


@pytest.mark.contract
def test_a_program_may_change_its_data_right_after_sendto(run: Any) -> None:
    class Changing(Recorder):
        def datagram_received(self, data: bytes, addr: Any) -> None:
            answer = bytearray(data)
            self.transport.sendto(memoryview(answer), addr)
            answer[:] = b"changed."

    async def main(endpoints: Endpoints) -> None:
        server = await endpoints.make(Changing, local_addr=("127.0.0.1", 0))
        client = await endpoints.make(remote_addr=server.transport.get_extra_info("sockname"))
        data = bytearray(b"original")
        client.transport.sendto(data)
        data[:] = b"modified"
        await client.until(lambda: client.received)
        assert client.received[0][0] == b"original"

    run(main)


@pytest.mark.contract
def test_close_in_datagram_received_ends_delivery(run: Any) -> None:
    class OnlyOne(Recorder):
        def datagram_received(self, data: bytes, addr: Any) -> None:
            super().datagram_received(data, addr)
            self.transport.sendto(b"last words", addr)
            self.transport.close()

    async def main(endpoints: Endpoints) -> None:
        server = await endpoints.make(OnlyOne, local_addr=("127.0.0.1", 0))
        client = await endpoints.make(local_addr=("127.0.0.1", 0))
        for _ in range(5):
            client.transport.sendto(b"x", server.transport.get_extra_info("sockname"))
        await client.until(lambda: client.received)
        assert await server.lost is None
        assert len(server.received) == 1

    run(main)


@pytest.mark.contract
def test_an_exception_of_datagram_received_is_reported_and_the_endpoint_stays_open(
    loop: asyncio.AbstractEventLoop, run: Any
) -> None:
    class Raising(Recorder):
        def datagram_received(self, data: bytes, addr: Any) -> None:
            super().datagram_received(data, addr)
            raise ZeroDivisionError

    async def main(endpoints: Endpoints) -> None:
        contexts: list[Any] = []
        loop.set_exception_handler(lambda loop, context: contexts.append(context["exception"]))
        server = await endpoints.make(Raising, local_addr=("127.0.0.1", 0))
        client = await endpoints.make(remote_addr=server.transport.get_extra_info("sockname"))
        for _ in range(3):
            client.transport.sendto(b"x")
        await server.until(lambda: len(server.received) == 3)
        await asyncio.sleep(0)
        assert [type(error) for error in contexts] == [ZeroDivisionError] * 3
        assert not server.transport.is_closing()

    run(main)


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE")


@pytest.mark.contract
def test_callbacks_run_in_the_context_that_created_the_endpoint(run: Any) -> None:
    class Looking(Recorder):
        def datagram_received(self, data: bytes, addr: Any) -> None:
            super().datagram_received(VARIABLE.get("unset").encode(), addr)

    async def main(endpoints: Endpoints) -> None:
        VARIABLE.set("maker")
        server = await endpoints.make(Looking, local_addr=("127.0.0.1", 0))
        VARIABLE.set("later")
        client = await endpoints.make(remote_addr=server.transport.get_extra_info("sockname"))
        client.transport.sendto(b"x")
        await server.until(lambda: server.received)
        assert server.received[0][0] == b"maker"

    run(main)


def test_one_system_call_receives_a_batch(loop: Any, run: Any) -> None:
    """Not one turn a datagram: what is there is delivered in one."""

    async def main(endpoints: Endpoints) -> None:
        server = await endpoints.make(local_addr=("127.0.0.1", 0))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            for _ in range(20):
                sock.sendto(b"x", server.transport.get_extra_info("sockname"))
        await server.until(lambda: server.received)
        assert len(server.received) == 20

    run(main)


def test_an_unclosed_transport_emits_a_resource_warning(loop: asyncio.AbstractEventLoop) -> None:
    async def main() -> None:
        await loop.create_datagram_endpoint(asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0))

    loop.run_until_complete(main())
    loop.close()
    with pytest.warns(ResourceWarning, match="unclosed"):
        gc.collect()
