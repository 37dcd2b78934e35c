"""Datagram endpoints."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from compat.behaviours import check
from compat.behaviours.helpers import open_fds, raises, raises_async, soon, until

UDP = "create_datagram_endpoint, 65 000 B, reuse_port, write limits"
ODD = "UDP error_received(ECONNREFUSED), empty datagram, sock=, family only"
UNIX = "AF_UNIX datagram endpoint by path"


class Datagrams(asyncio.DatagramProtocol):
    """Writes down what arrives."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.received: list[tuple[bytes, Any]] = []
        self.errors: list[Exception] = []
        self.calls: list[str] = []
        self.lost: asyncio.Future[Any] = loop.create_future()

    def connection_made(self, transport: Any) -> None:
        self.calls.append("made")
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.received.append((data, addr))

    def error_received(self, exc: Exception) -> None:
        self.errors.append(exc)

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")

    def connection_lost(self, exc: Any) -> None:
        self.calls.append("lost")
        self.lost.set_result(exc)


class EchoDatagrams(Datagrams):
    def datagram_received(self, data: bytes, addr: Any) -> None:
        super().datagram_received(data, addr)
        self.transport.sendto(data, addr)


async def endpoint(protocol: type[Datagrams] = Datagrams, **options: Any) -> tuple[Any, Any]:
    loop = asyncio.get_running_loop()
    return await soon(loop.create_datagram_endpoint(protocol, **options))


@check(UDP)
async def datagrams_go_and_come_back() -> None:
    server, server_protocol = await endpoint(EchoDatagrams, local_addr=("127.0.0.1", 0))
    address = server.get_extra_info("sockname")
    client, protocol = await endpoint(remote_addr=address)
    if sys.version_info >= (3, 12):
        assert isinstance(client, asyncio.DatagramTransport)
    assert client.get_extra_info("peername") == address
    message = os.urandom(65_000)
    client.sendto(message)
    client.sendto(bytearray(b"small"))
    client.sendto(memoryview(b"view"), address)
    await until(lambda: len(protocol.received) == 3)
    assert [data for data, _ in protocol.received] == [message, b"small", b"view"]
    assert all(source == address for _, source in protocol.received)
    assert type(protocol.received[0][0]) is bytes
    client.close()
    server.close()
    assert await soon(protocol.lost) is None
    assert await soon(server_protocol.lost) is None
    assert protocol.calls == ["made", "lost"]


@check(UDP)
async def unconnected_endpoints_name_their_peer() -> None:
    one, _one_protocol = await endpoint(local_addr=("127.0.0.1", 0))
    two, two_protocol = await endpoint(local_addr=("127.0.0.1", 0))
    for number in range(100):
        one.sendto(b"%d" % number, two.get_extra_info("sockname"))
    await until(lambda: len(two_protocol.received) == 100)
    assert two_protocol.received == [
        (b"%d" % number, one.get_extra_info("sockname")) for number in range(100)
    ]
    one.close()
    two.close()


@check(UDP)
async def ipv6_datagrams() -> None:
    server, _server_protocol = await endpoint(EchoDatagrams, local_addr=("::1", 0))
    address = server.get_extra_info("sockname")
    client, protocol = await endpoint(remote_addr=address[:2])
    client.sendto(b"six")
    await until(lambda: protocol.received == [(b"six", address)])
    client.close()
    server.close()


@check(UDP)
async def two_endpoints_share_a_port_on_request() -> None:
    one, _ = await endpoint(local_addr=("127.0.0.1", 0), reuse_port=True)
    address = one.get_extra_info("sockname")
    two, _ = await endpoint(local_addr=address, reuse_port=True)
    before = open_fds()
    await raises_async(OSError, endpoint(local_addr=address))
    assert open_fds() == before
    one.close()
    two.close()


@check(UDP)
async def datagram_write_limits() -> None:
    transport, protocol = await endpoint(local_addr=("127.0.0.1", 0))
    assert transport.get_write_buffer_limits() == (16384, 65536)
    assert transport.get_write_buffer_size() == 0
    transport.set_write_buffer_limits(high=1000)
    assert transport.get_write_buffer_limits() == (250, 1000)
    transport.abort()
    assert await soon(protocol.lost) is None


@check(UDP)
async def broadcast_is_allowed_on_request() -> None:
    transport, protocol = await endpoint(local_addr=("127.0.0.1", 0), allow_broadcast=True)
    sock = transport.get_extra_info("socket")
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST) != 0
    transport.close()
    await soon(protocol.lost)


@check(ODD)
async def nobody_there_is_error_received() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        address = sock.getsockname()
    transport, protocol = await endpoint(remote_addr=address)
    transport.sendto(b"anyone?")
    await until(lambda: protocol.errors)
    assert isinstance(protocol.errors[0], ConnectionRefusedError), protocol.errors
    assert not transport.is_closing()
    transport.close()
    assert await soon(protocol.lost) is None


@check(ODD)
async def failed_send_keeps_the_transport() -> None:
    transport, protocol = await endpoint(local_addr=("127.0.0.1", 0))
    transport.sendto(bytes(70_000), transport.get_extra_info("sockname"))
    await until(lambda: protocol.errors)
    assert isinstance(protocol.errors[0], OSError)
    transport.sendto(b"to myself", transport.get_extra_info("sockname"))
    await until(lambda: protocol.received)
    assert protocol.received[0][0] == b"to myself" and not protocol.lost.done()
    transport.close()


@check(ODD, since=(3, 13))
async def empty_datagrams_are_sent_and_received() -> None:
    server, _ = await endpoint(EchoDatagrams, local_addr=("127.0.0.1", 0))
    client, protocol = await endpoint(remote_addr=server.get_extra_info("sockname"))
    client.sendto(b"")
    client.sendto(b"full")
    await until(lambda: len(protocol.received) == 2)
    assert [data for data, _ in protocol.received] == [b"", b"full"]
    client.close()
    server.close()


@check(ODD)
async def endpoint_of_a_given_socket() -> None:
    sock = socket.socket(type=socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))
    sock.setblocking(False)
    transport, protocol = await endpoint(sock=sock)
    transport.sendto(b"me", sock.getsockname())
    await until(lambda: protocol.received)
    transport.close()
    await soon(protocol.lost)
    assert sock.fileno() == -1


@check(ODD)
async def endpoint_of_a_family_only() -> None:
    receiver, receiver_protocol = await endpoint(local_addr=("127.0.0.1", 0))
    transport, _ = await endpoint(family=socket.AF_INET)
    transport.sendto(b"from nowhere", receiver.get_extra_info("sockname"))
    await until(lambda: receiver_protocol.received)
    transport.close()
    receiver.close()


@check(ODD)
async def wrong_datagram_arguments_are_refused() -> None:
    await raises_async(ValueError, endpoint())
    with socket.socket() as stream:
        await raises_async(ValueError, endpoint(sock=stream))
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        await raises_async(ValueError, endpoint(sock=sock, local_addr=("127.0.0.1", 0)))
    receiver, _ = await endpoint(local_addr=("127.0.0.1", 0))
    transport, protocol = await endpoint(remote_addr=receiver.get_extra_info("sockname"))
    raises(TypeError, transport.sendto, "text")
    raises(ValueError, transport.sendto, b"x", ("127.0.0.1", 1))
    transport.close()
    receiver.close()
    await soon(protocol.lost)
    transport.sendto(b"after close")


@check(ODD)
async def error_in_datagram_received_is_reported() -> None:
    loop = asyncio.get_running_loop()
    contexts: list[Any] = []
    loop.set_exception_handler(lambda _, context: contexts.append(context))

    class Failing(Datagrams):
        def datagram_received(self, data: bytes, addr: Any) -> None:
            raise LookupError("datagram")

    transport, protocol = await endpoint(Failing, local_addr=("127.0.0.1", 0))
    transport.sendto(b"x", transport.get_extra_info("sockname"))
    await until(lambda: contexts)
    assert isinstance(contexts[0]["exception"], LookupError)
    transport.abort()
    await soon(protocol.lost)
    loop.set_exception_handler(None)


@check(UNIX)
async def unix_datagrams_by_path() -> None:
    with tempfile.TemporaryDirectory() as folder:
        one_path, two_path = str(Path(folder) / "one"), str(Path(folder) / "two")
        one, one_protocol = await endpoint(EchoDatagrams, local_addr=one_path, family=socket.AF_UNIX)
        two, two_protocol = await endpoint(local_addr=two_path, remote_addr=one_path, family=socket.AF_UNIX)
        two.sendto(b"by path")
        await until(lambda: two_protocol.received)
        assert one_protocol.received == [(b"by path", two_path)]
        assert two_protocol.received[0][0] == b"by path"
        one.close()
        two.close()


@check(UNIX)
async def unix_datagrams_to_any_path() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "receiver")
        receiver, receiver_protocol = await endpoint(local_addr=path, family=socket.AF_UNIX)
        sender, sender_protocol = await endpoint(family=socket.AF_UNIX)
        sender.sendto(b"unbound", path)
        await until(lambda: receiver_protocol.received)
        assert receiver_protocol.received[0][0] == b"unbound"
        sender.sendto(b"x", str(Path(folder) / "nobody"))
        await until(lambda: sender_protocol.errors)
        assert isinstance(sender_protocol.errors[0], FileNotFoundError)
        sender.close()
        receiver.close()
