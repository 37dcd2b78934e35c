"""The server process of one candidate: ``python -m benchmarks.server_child CANDIDATE {json}``.

Pins itself to its core, makes the loop, listens, prints the port as one line, and serves until it is killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
import sys
from typing import Any

from benchmarks.candidate import candidate_named
from benchmarks.limits import allow_files
from benchmarks.served import (
    PROTOCOLS,
    Broadcast,
    DatagramBurst,
    DatagramEcho,
    accept_readable,
    accept_sockets,
    echo_stream,
)

BACKLOG = 4096


def listener_of(family: str, path: str) -> socket.socket:
    if family == "unix":
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
    else:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", 0))
        do_not_pace(listener)
    listener.setblocking(False)
    return listener


def do_not_pace(listener: socket.socket) -> None:
    """The connections' congestion control, whatever the machine's: native/common.h says why."""
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")


def tls_context(order: dict[str, Any]) -> ssl.SSLContext | None:
    if not order.get("certificate"):
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(order["certificate"], order["key"])
    return context


def tell(port: int) -> None:
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()


async def serve(order: dict[str, Any]) -> None:
    loop = asyncio.get_running_loop()
    kind, family, path = order["kind"], order["family"], order.get("path", "")
    Broadcast.message, Broadcast.expected = b"b" * order["size"], order["connections"]
    if kind in ("uvicorn", "fastapi", "aiohttp", "websocket"):
        from benchmarks import web_served

        await web_served.serve(kind, tell)
        return
    if family == "udp":
        DatagramBurst.answers = order["answers"]
        protocol = DatagramBurst if order["answers"] > 1 else DatagramEcho
        transport, _protocol = await loop.create_datagram_endpoint(protocol, local_addr=("127.0.0.1", 0))
        keep.append(transport)
        tell(transport.get_extra_info("sockname")[1])
    elif kind == "sock":
        listener = listener_of(family, path)
        listener.listen(BACKLOG)
        tell(listener.getsockname()[1] if family == "tcp" else 0)
        await accept_sockets(loop, listener)
    elif kind == "readers":
        listener = listener_of(family, path)
        listener.listen(BACKLOG)
        tell(listener.getsockname()[1] if family == "tcp" else 0)
        loop.add_reader(listener, accept_readable, loop, listener)
    else:
        await serve_connections(loop, kind, family, path, tls_context(order))
    await asyncio.Event().wait()


async def serve_connections(
    loop: asyncio.AbstractEventLoop, kind: str, family: str, path: str, tls: ssl.SSLContext | None
) -> None:
    """A server by asyncio's own calls, given a host or a path, as programs do it."""
    options: dict[str, Any] = {"ssl": tls, "backlog": BACKLOG}
    if kind == "streams" and family == "unix":
        server = await asyncio.start_unix_server(echo_stream, path, **options)
    elif kind == "streams":
        server = await asyncio.start_server(echo_stream, "127.0.0.1", 0, **options)
    elif family == "unix":
        server = await loop.create_unix_server(PROTOCOLS[kind], path, **options)
    else:
        server = await loop.create_server(PROTOCOLS[kind], "127.0.0.1", 0, **options)
    if family == "tcp":
        # by a descriptor of its own: uvloop's have no setsockopt
        with socket.socket(fileno=os.dup(server.sockets[0].fileno())) as listener:
            do_not_pace(listener)
    tell(0 if family == "unix" else server.sockets[0].getsockname()[1])
    keep.append(server)


keep: list[object] = []  # servers that must not be collected


def settle_allocator() -> None:
    """Free one large block, as many a program has done that runs for a while.

    glibc maps blocks above 128 KB one by one until the first large one is freed. asyncio and rloop receive
    into a new block of 256 KB: a fresh process maps and unmaps it for each message.
    """
    bytearray(16 << 20)


def main() -> None:
    candidate, order = candidate_named(sys.argv[1]), json.loads(sys.argv[2])
    if order.get("core", -1) >= 0:
        os.sched_setaffinity(0, {order["core"]})
    allow_files(1 << 20)
    if order["settled"]:
        settle_allocator()
    loop = candidate.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(serve(order))


if __name__ == "__main__":
    main()
