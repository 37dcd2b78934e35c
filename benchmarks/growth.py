"""What a callback costs while 10, 1,000 or 100,000 timers, ready handles or connections are there already."""

from __future__ import annotations

import asyncio
import socket

from benchmarks.limits import allow_files
from benchmarks.repeat import rate_of
from benchmarks.row import Skipped
from benchmarks.turn import chain, far_timers, nothing

IP_BIND_ADDRESS_NO_PORT = 24  # socket names it since 3.12


def with_timers(loop: asyncio.AbstractEventLoop, seconds: float, pending: int) -> dict[str, float]:
    """The cost of one turn (a chain of call_soon) above `pending` timers."""
    far = far_timers(loop, pending)
    values = chain(loop, seconds)
    for handle in far:
        handle.cancel()
    return {"cost": 1 / values["rate"]}


def with_ready(loop: asyncio.AbstractEventLoop, seconds: float, ready: int) -> dict[str, float]:
    """The cost of one of `ready` callbacks that run in the same turn."""
    repeats = max(1, 10_000 // ready)

    async def turns() -> None:
        schedule = loop.call_soon
        for _ in range(repeats):
            for _ in range(ready):
                schedule(nothing)
            await asyncio.sleep(0)

    return {"cost": 1 / loop.run_until_complete(rate_of(turns, repeats * ready, seconds))}


def with_connections(
    loop: asyncio.AbstractEventLoop, seconds: float, open_connections: int
) -> dict[str, float]:
    """The cost of one turn (a chain of call_soon) while that many TCP connections are open and idle."""
    if allow_files(2 * open_connections + 200) < 2 * open_connections + 200:
        raise Skipped(f"{open_connections} connections need more open files than this machine allows")
    connections = IdleConnections(loop, open_connections)
    loop.run_until_complete(connections.open())
    try:
        values = chain(loop, seconds)
    finally:
        loop.run_until_complete(connections.close())
    return {"cost": 1 / values["rate"]}


class IdleConnections:
    """Many accepted connections of one loop with plain client sockets at the other end, all in this
    process.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, count: int) -> None:
        self._loop = loop
        self._count = count
        self._clients: list[socket.socket] = []
        self._transports: list[asyncio.BaseTransport] = []
        self._server: asyncio.AbstractServer | None = None

    async def open(self) -> None:
        transports = self._transports

        class Accepted(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                transports.append(transport)

        self._server = await self._loop.create_server(Accepted, "127.0.0.1", 0, backlog=1024)
        address = self._server.sockets[0].getsockname()
        while len(self._clients) < self._count:
            for _ in range(min(200, self._count - len(self._clients))):
                self._clients.append(connect_from_some_address(len(self._clients), address))
            while len(transports) < len(self._clients):
                await asyncio.sleep(0.001)

    async def close(self) -> None:
        for transport in self._transports:
            transport.abort()  # type: ignore[attr-defined]
        for client in self._clients:
            client.close()
        if self._server is not None:
            self._server.close()
        await asyncio.sleep(0.05)


def connect_from_some_address(number: int, address: tuple[str, int]) -> socket.socket:
    """A connected client; every 10,000 take another loopback address, because one address has only
    28,000 ports.
    """
    client = socket.socket()
    # else bind() looks for a port that is free whatever the peer, for milliseconds once there are thousands
    client.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
    client.bind((f"127.0.0.{2 + number // 10_000}", 0))
    client.connect(address)
    return client
