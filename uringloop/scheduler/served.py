"""Served: what Scheduler.serve returns. Owns the listening sockets of all contexts until it is closed;
connections belong to the loop that has them."""

from __future__ import annotations

import asyncio
import functools
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from uringloop.scheduler.context import Context

if TYPE_CHECKING:
    from uringloop.scheduler.scheduler import Scheduler

Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None] | None]
Factory = Callable[[], asyncio.BaseProtocol]


class Served:
    """A server on every context."""

    def __init__(self) -> None:
        self.addresses: list[Any] = []  # what is listened on, as getsockname() says
        self._closers: list[tuple[Context, Callable[[], object]]] = []

    @property
    def port(self) -> int:
        port: int = self.addresses[0][1]
        return port

    def close(self) -> None:
        """From anywhere: accept no more. Connections stay."""
        closers, self._closers = self._closers, []
        for context, close in closers:
            with suppress(RuntimeError):  # its loop is closed, and the server with it
                context.loop.call_soon_threadsafe(close)

    def __repr__(self) -> str:
        return f"<Served {'open' if self._closers else 'closed'} {self.addresses}>"


def stream_factory(connected: Connected) -> Factory:
    """As asyncio.start_server makes its protocols, on whichever loop runs."""

    def make() -> asyncio.BaseProtocol:
        loop = asyncio.get_running_loop()
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(loop=loop), connected, loop=loop)

    return make


def serve(
    scheduler: Scheduler,
    connected: Connected | None,
    host: str | None,
    port: int | None,
    path: str | None,
    factory: Factory | None,
    options: dict[str, Any],
) -> Served:
    if (connected is None) == (factory is None):
        raise TypeError("either client_connected_cb or protocol_factory says what to do with a connection")
    if factory is None:
        assert connected is not None
        factory = stream_factory(connected)
    served = Served()
    try:
        if path is not None:
            scheduler.submit(
                _listen_unix, served, scheduler, path, factory, options, context=scheduler.contexts[0]
            ).result()
        else:
            for context in scheduler.contexts:
                scheduler.submit(
                    _listen, served, context, factory, host, port, options, context=context
                ).result()
                port = served.port  # where 0 was asked for, the first one's is everybody's
    except BaseException:
        served.close()
        raise
    return served


async def _listen(
    served: Served,
    context: Context,
    factory: Factory,
    host: str | None,
    port: int | None,
    options: dict[str, Any],
) -> None:
    """One listener of this context's own: the kernel spreads the connections over all that share the port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(factory, host, port, reuse_port=True, **options)
    served._closers.append((context, server.close))
    served.addresses += [sock.getsockname() for sock in server.sockets]


async def _listen_unix(
    served: Served, scheduler: Scheduler, path: str, factory: Factory, options: dict[str, Any]
) -> None:
    """A path has one listener: this context accepts for all, and hands the sockets out in turn."""
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.setblocking(False)
        with suppress(FileNotFoundError):
            if not socket_lives(path):
                os.unlink(path)
        sock.bind(path)
        sock.listen(options.pop("backlog", 100))
    except BaseException:
        sock.close()
        raise
    task = asyncio.get_running_loop().create_task(_accept(scheduler, sock, factory, options))
    task.add_done_callback(functools.partial(_unlink, sock, path))
    served._closers.append((scheduler.contexts[0], task.cancel))
    served.addresses.append(path)


def socket_lives(path: str) -> bool:
    """Does somebody listen there?"""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return False
    return True


def _unlink(sock: socket.socket, path: str, task: asyncio.Task[None]) -> None:
    sock.close()
    with suppress(OSError):
        os.unlink(path)


async def _accept(
    scheduler: Scheduler, listener: socket.socket, factory: Factory, options: dict[str, Any]
) -> None:
    loop, turn = asyncio.get_running_loop(), 0
    while True:
        connection, _ = await loop.sock_accept(listener)
        living = [context for context in scheduler.contexts if context.alive]
        turn += 1
        target = living[turn % len(living)].loop
        try:
            target.call_soon_threadsafe(_adopt, target, connection, factory, options)
        except RuntimeError:
            connection.close()  # its context ended just now


def _adopt(
    loop: asyncio.AbstractEventLoop, connection: socket.socket, factory: Factory, options: dict[str, Any]
) -> None:
    async def connect() -> None:
        try:
            await loop.connect_accepted_socket(factory, connection, **options)
        except BaseException:
            connection.close()
            raise

    loop.create_task(connect())
