"""Scenarios: sock_* and addresses, datagrams, and streams on sockets."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from collections.abc import Callable
from typing import Any

from tests.regressions.scenarios.common import Log, Recorder, scenario, tell, tell_async, turns


def pair(kind: socket.SocketKind = socket.SOCK_STREAM) -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    ours.setblocking(False)
    theirs.setblocking(False)
    return ours, theirs


@scenario
def odd_arguments_of_sock_calls(loop: Any) -> Log:
    log: Log = []
    sock, other = pair()
    other.send(b"hello")
    closed, fresh, slow = socket.socket(), socket.socket(), socket.socket()
    closed.close()
    fresh.setblocking(False)
    slow.settimeout(5)
    calls: dict[str, Callable[[], Any]] = {
        "0": lambda: loop.sock_recv(sock, 0),
        "-1": lambda: loop.sock_recv(sock, -1),
        "1.5": lambda: loop.sock_recv(sock, 1.5),
        "huge": lambda: loop.sock_recv(sock, 1 << 62),
        "larger": lambda: loop.sock_recv(sock, 1 << 70),
        "None": lambda: loop.sock_recv(sock, None),
        "into read-only": lambda: loop.sock_recv_into(sock, b"abc"),
        "into nothing": lambda: loop.sock_recv_into(sock, bytearray()),
        "from -1": lambda: loop.sock_recvfrom(sock, -1),
        "from into less": lambda: loop.sock_recvfrom_into(sock, bytearray(2), 5),
        "from into -1": lambda: loop.sock_recvfrom_into(sock, bytearray(2), -1),
        "sendall None": lambda: loop.sock_sendall(sock, None),
        "sendall text": lambda: loop.sock_sendall(sock, "x"),
        "sendall every other": lambda: loop.sock_sendall(sock, memoryview(b"abcdef")[::2]),
        "sendto None": lambda: loop.sock_sendto(sock, b"x", None),
        "rest": lambda: loop.sock_recv(sock, 100),
        "closed recv": lambda: loop.sock_recv(closed, 10),
        "closed recv 0": lambda: loop.sock_recv(closed, 0),
        "closed accept": lambda: loop.sock_accept(closed),
        "closed sendall": lambda: loop.sock_sendall(closed, b""),
        "closed connect": lambda: loop.sock_connect(closed, ("127.0.0.1", 1)),
        "not listening": lambda: loop.sock_accept(fresh),
        "not connected": lambda: loop.sock_recv(fresh, 1),
        "nothing to nowhere": lambda: loop.sock_sendall(fresh, b""),
        "has a timeout": lambda: loop.sock_recv(slow, 1),
    }

    async def main() -> None:
        loop.set_debug(True)  # asyncio looks for a timeout in debug mode only
        for name, call in calls.items():
            await tell_async(log, name, call)

    loop.run_until_complete(main())
    return log


@scenario
def two_receives_of_one_socket(loop: Any) -> Log:
    log: Log = []
    sock, other = pair()

    async def receive() -> None:
        try:
            log.append(await loop.sock_recv(sock, 3))
        except asyncio.CancelledError:
            log.append("cancelled")

    async def main() -> None:
        tasks = [asyncio.ensure_future(receive())]
        await turns(1)
        tasks.append(asyncio.ensure_future(receive()))
        await turns(1)
        other.send(b"abcdef")
        await turns()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    loop.run_until_complete(main())
    return sorted(log, key=str)


@scenario
def reader_and_receive_of_one_socket(loop: Any) -> Log:
    log: Log = []
    sock, other = pair()
    called: list[bool] = []

    async def main() -> None:
        loop.add_reader(sock, called.append, True)
        task = asyncio.ensure_future(loop.sock_recv(sock, 3))
        await turns(1)
        other.send(b"x")
        await turns()
        log.append(("received", task.done() and task.result()))
        tell(log, "removed", lambda: loop.remove_reader(sock))
        task.cancel()
        log.append(("called", bool(called)))

    loop.run_until_complete(main())
    return log


class Datagrams(asyncio.DatagramProtocol):
    def __init__(self, log: Log) -> None:
        self.log = log

    def datagram_received(self, data: bytes, address: Any) -> None:
        self.log.append(("got", data))

    def error_received(self, error: Any) -> None:
        self.log.append(("error", type(error).__name__, error.errno))

    def connection_lost(self, error: Any) -> None:
        self.log.append(("lost", type(error).__name__, getattr(error, "errno", None)))


@scenario
def odd_datagrams(loop: Any) -> Log:
    log: Log = []

    async def main() -> None:
        transport, _ = await loop.create_datagram_endpoint(
            lambda: Datagrams(log), local_addr=("127.0.0.1", 0)
        )
        address = transport.get_extra_info("sockname")
        calls: dict[str, Callable[[], Any]] = {
            "text": lambda: transport.sendto("x", address),
            "nowhere": lambda: transport.sendto(b"x"),
            "no address": lambda: transport.sendto(b"x", "abc"),
            "no port": lambda: transport.sendto(b"x", ("127.0.0.1", 99999)),
            "a list": lambda: transport.sendto(b"x", ["127.0.0.1", 5]),
            "too large": lambda: transport.sendto(b"x" * 70000, address),
            "every other": lambda: transport.sendto(memoryview(b"abcdef")[::2], address),
            "by name": lambda: transport.sendto(b"n", ("localhost", address[1])),
            "port 0": lambda: transport.sendto(b"n", ("127.0.0.1", 0)),
        }
        for name, call in calls.items():
            tell(log, name, call)
        await turns()
        tell(log, "is_closing", transport.is_closing)
        transport.close()
        tell(log, "after close", lambda: transport.sendto(b"late", address))
        await turns()
        tell(log, "after the end", lambda: transport.sendto(b"late", address))
        tell(log, "abort", transport.abort)

    loop.run_until_complete(main())
    return log


@scenario
def connected_datagrams_to_nobody(loop: Any) -> Log:
    log: Log = []

    async def main() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gone:
            gone.bind(("127.0.0.1", 0))
            address = gone.getsockname()
        transport, _ = await loop.create_datagram_endpoint(lambda: Datagrams(log), remote_addr=address)
        for number in range(3):
            tell(log, number, lambda: transport.sendto(b"x"))
            await turns()
        tell(log, "elsewhere", lambda: transport.sendto(b"x", ("127.0.0.1", 1)))
        tell(log, "there", lambda: transport.sendto(b"x", address))
        tell(log, "as a list", lambda: transport.sendto(b"x", list(address)))
        transport.abort()
        await turns()
        log[:] = [tuple(str(part).replace(str(address[1]), "PORT") for part in entry) for entry in log]

    loop.run_until_complete(main())
    return sorted(set(log))  # how often the kernel tells of its error is its own


@scenario
def odd_reads_of_a_stream(loop: Any) -> Log:
    log: Log = []

    async def main() -> None:
        sock, other = pair()
        reader, writer = await asyncio.open_connection(sock=sock, limit=10)
        other.send(b"0123456789" * 5)
        await turns()
        calls: dict[str, Callable[[], Any]] = {
            "line": reader.readline,
            "until": lambda: reader.readuntil(b"9"),
            "exactly -1": lambda: reader.readexactly(-1),
            "0": lambda: reader.read(0),
            "5": lambda: reader.read(5),
            "1.5": lambda: reader.read(1.5),  # type: ignore[arg-type]
            "True": lambda: reader.read(True),
            "exactly 0": lambda: reader.readexactly(0),
            "text": lambda: reader.read("x"),  # type: ignore[arg-type]
        }
        for name, call in calls.items():
            await tell_async(log, name, call)
        waiting = asyncio.ensure_future(reader.readexactly(1000))
        await turns()
        for name, call in {
            "second": lambda: reader.read(1),
            "second exactly": lambda: reader.readexactly(100),
            "second line": reader.readline,
        }.items():
            await tell_async(log, name, call)
        waiting.cancel()
        await turns()
        other.send(b"abc\n")
        other.close()
        await turns()
        for name, call in {
            "all": lambda: reader.read(-1),
            "at the end": lambda: reader.read(5),
            "exactly at the end": lambda: reader.readexactly(5),
        }.items():
            await tell_async(log, name, call)
        log.append((reader.at_eof(), repr(reader)[:30]))
        writer.close()
        await tell_async(log, "wait_closed", writer.wait_closed)
        await tell_async(log, "drain", writer.drain)

    loop.run_until_complete(main())
    return log


@scenario
def buffer_of_a_sendall_that_ends_early(loop: Any) -> Log:
    log: Log = []
    sock, other = pair()
    data = bytearray(b"x" * 3_000_000)

    def grow() -> None:
        tell(log, "grow", lambda: data.append(1))

    async def main() -> None:
        task = asyncio.ensure_future(loop.sock_sendall(sock, data))
        await turns()
        grow()
        task.cancel()
        await asyncio.wait([task])
        grow()
        other.close()
        await tell_async(log, "to nobody", lambda: loop.sock_sendall(sock, data))
        grow()

    loop.run_until_complete(main())
    return log


@scenario
def paths_of_unix_sockets(loop: Any) -> Log:
    log: Log = []
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        loop.run_until_complete(unix_streams(loop, log, folder))
        loop.run_until_complete(unix_datagrams(loop, log, folder))
    return [tuple(str(part).replace(folder, "FOLDER") for part in entry) for entry in log]


async def unix_streams(loop: Any, log: Log, folder: str) -> None:
    async def both(name: str, path: Any, to: Any) -> None:
        async def serve() -> Any:
            return await loop.create_unix_server(lambda: Recorder([]), path)

        async def connect() -> Any:
            return await loop.create_unix_connection(lambda: Recorder([]), to)

        server = await tell_async(log, name, serve, lambda server: "serves")
        client = await tell_async(log, name, connect, lambda client: "connected")
        if client is not None:
            log.append((name, repr(client[0].get_extra_info("peername"))))
            client[0].close()
        if server is not None:
            server.close()

    for length in (100, 106, 107, 108, 109, 300):
        path = os.path.join(folder, "x" * (length - len(folder) - 1))
        await both(str(length), path, path)
    await both("surrogates", os.path.join(folder, "b\udcff\udc80"), os.path.join(folder, "b\udcff\udc80"))
    await both("a zero", folder + "/a\0b", folder + "/a\0b")
    await both("abstract", "\0uringloop-scenario\0\xff", b"\0uringloop-scenario\0\xc3\xbf")


async def unix_datagrams(loop: Any, log: Log, folder: str) -> None:
    paths = [os.path.join(folder, "one"), os.path.join(folder, "\udcfe")]
    socks = []
    for path in paths:
        socks.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        socks[-1].setblocking(False)
        socks[-1].bind(path)
    await tell_async(log, "to one", lambda: loop.sock_sendto(socks[1], b"hi", paths[0]))
    data, address = await loop.sock_recvfrom(socks[0], 10)
    log.append((data, address == paths[1]))
    await tell_async(log, "to two", lambda: loop.sock_sendto(socks[0], b"yo", os.fsencode(paths[1])))
    await tell_async(log, "into", lambda: loop.sock_recvfrom_into(socks[1], bytearray(5)), lambda got: got[0])
    for bad in ("", b"", "\0none", 5, ("a",), folder + "/none", "x" * 200):
        await tell_async(log, ascii(bad), lambda bad=bad: loop.sock_sendto(socks[0], b"z", bad))
    for sock in socks:
        sock.close()


@scenario
def addresses_and_their_errors(loop: Any) -> Log:
    log: Log = []
    hosts: list[tuple[Any, Any]] = [
        ("127.0.0.1", "80"),
        ("127.0.0.1", 80),
        ("127.1", 80),
        ("::1", 80),
        ("::1%lo", 80),
        ("fe80::1%lo", 80),
        ("fe80::1%1", 80),
        ("fe80::1%nosuch", 80),
        ("::ffff:1.2.3.4", None),
        ("1.2.3.4", -1),
        ("1.2.3.4", 70000),
        ("1.2.3.4", "70000"),
        ("1.2.3.4", b"80"),
        (b"1.2.3.4", 80),
        ("", 80),
        (None, 80),
        ("1.2.3.4", True),
        ("0x7f.1", 80),
        ("1.2.3.4\0", 80),
    ]
    numeric = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV

    async def main() -> None:
        for host, port in hosts:
            await resolved(
                (host, port),
                lambda host=host, port=port: loop.getaddrinfo(host, port, type=socket.SOCK_STREAM),
            )
        await resolved("family", lambda: loop.getaddrinfo("127.0.0.1", 1, family=socket.AF_INET6))
        await resolved("flags", lambda: loop.getaddrinfo("x", 1, flags=socket.AI_NUMERICHOST))
        await resolved("type", lambda: loop.getaddrinfo("::1", 1, type=99))
        await resolved("name", lambda: loop.getnameinfo(("127.0.0.1", 80), numeric))
        await resolved("name 6", lambda: loop.getnameinfo(("::1", 80, 0, 5), numeric))
        await resolved("no name", lambda: loop.getnameinfo(("x y", 80), numeric))
        sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        sock.setblocking(False)
        sock.bind(("::1", 0))
        host, port = sock.getsockname()[:2]
        for rest in ((), (0,), (0, 99999), (-1,), (1 << 20,), (0, -1), (0, 1 << 32)):
            await resolved(("to", rest), lambda rest=rest: loop.sock_sendto(sock, b"x", (host, port, *rest)))
        for other in ("::1%lo", "localhost", "127.0.0.1"):
            await resolved(("to", other), lambda other=other: loop.sock_sendto(sock, b"x", (other, port)))
        client = socket.socket()
        client.setblocking(False)
        for bad in (
            ("127.0.0.1", 99999),
            ("127.0.0.1",),
            "x",
            ("localhost", "nosuch"),
            ("127.0.0.1", None),
            None,
        ):
            await resolved(("connect", bad), lambda bad=bad: loop.sock_connect(client, bad))

    async def resolved(name: Any, call: Callable[[], Any]) -> None:
        """The executor may take its time."""
        try:
            log.append((name, await asyncio.wait_for(call(), 10)))
        except Exception as error:
            log.append((name, type(error).__name__, str(error)))

    loop.run_until_complete(main())
    return log


@scenario
def accept_cancelled_and_accept(loop: Any) -> Log:
    log: Log = []
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)

    async def main() -> None:
        task = asyncio.ensure_future(loop.sock_accept(listener))
        await turns(1)
        client = socket.create_connection(listener.getsockname())
        task.cancel()
        await turns(1)
        log.append(("cancelled", task.cancelled()))
        sock, address = await loop.sock_accept(listener)
        log.append((sock.gettimeout(), sock.family.name, address == client.getsockname()))
        log.append(("inheritable", os.get_inheritable(sock.fileno())))
        task = asyncio.ensure_future(loop.sock_accept(listener))
        await turns(1)
        listener.close()
        await turns()
        log.append(("done", task.done()))
        task.cancel()
        await asyncio.wait([task])
        log.append(("cancelled", task.cancelled()))

    loop.run_until_complete(main())
    return log
