"""What many checks need: recording protocols, connected pairs, servers that close themselves."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
CERTS = Path(__file__).parent / "certs"


def new_loop() -> Any:
    """A new loop of the kind under test (install.py has redirected this name to it)."""
    return asyncio.SelectorEventLoop()


async def soon(awaitable: Awaitable[T], seconds: float = 20.0) -> T:
    return await asyncio.wait_for(awaitable, seconds)


async def until(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    """Wait for something that only shows in a value."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.005)


class Recorder(asyncio.Protocol):
    """Writes down, in order, what happens to a connection."""

    transport: Any = None
    keep_open_after_eof = False

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.calls: list[str] = []
        self.data = bytearray()
        self.made: asyncio.Future[Any] = loop.create_future()
        self.eof: asyncio.Future[None] = loop.create_future()
        self.lost: asyncio.Future[Exception | None] = loop.create_future()

    def connection_made(self, transport: Any) -> None:
        self.calls.append("made")
        self.transport = transport
        self.made.set_result(transport)

    def data_received(self, data: bytes) -> None:
        if self.calls[-1] != "data":
            self.calls.append("data")
        self.data += data

    def eof_received(self) -> bool | None:
        self.calls.append("eof")
        self.eof.set_result(None)
        return self.keep_open_after_eof

    def connection_lost(self, exc: Exception | None) -> None:
        self.calls.append("lost")
        self.lost.set_result(exc)

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")

    async def received(self, count: int) -> bytes:
        """The data, as soon as this much of it is here."""
        await until(lambda: len(self.data) >= count)
        return bytes(self.data)


class HalfOpen(Recorder):
    """Keeps its write side open after the peer's EOF."""

    keep_open_after_eof = True


class Echo(Recorder):
    """Sends back what it gets."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.transport.write(data)


class Accepting:
    """A protocol factory with a future for the one connection expected."""

    def __init__(self, kind: type[Recorder] = Recorder) -> None:
        self.kind = kind
        self.protocol: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def __call__(self) -> Any:
        protocol = self.kind()
        self.protocol.set_result(protocol)
        return protocol

    async def connected(self) -> Any:
        """The protocol, once it has its transport."""
        protocol = await soon(self.protocol)
        await soon(asyncio.shield(protocol.made))
        return protocol


@contextlib.asynccontextmanager
async def serving(factory: Callable[[], Any], **options: Any) -> AsyncIterator[tuple[Any, int]]:
    """A TCP server on the loopback, and its port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(factory, "127.0.0.1", 0, **options)
    try:
        yield server, server.sockets[0].getsockname()[1]
    finally:
        server.close()


class Pair:
    """Both ends of one TCP connection."""

    def __init__(self, client: Any, server: Any, client_protocol: Any, server_protocol: Any) -> None:
        self.client = client
        self.server = server
        self.client_protocol = client_protocol
        self.server_protocol = server_protocol


@contextlib.asynccontextmanager
async def pair(
    client: Callable[[], Any] = Recorder,
    server: Callable[[], Any] = Recorder,
    client_options: dict[str, Any] | None = None,
    **server_options: Any,
) -> AsyncIterator[Pair]:
    """A connection between two transports of the loop under test."""
    loop = asyncio.get_running_loop()
    accepted: asyncio.Future[Any] = loop.create_future()

    def accept() -> Any:
        protocol = server()
        accepted.set_result(protocol)
        return protocol

    async with serving(accept, **server_options) as (_, port):
        transport, protocol = await soon(
            loop.create_connection(client, "127.0.0.1", port, **(client_options or {}))
        )
        other = await soon(accepted)
        await soon(asyncio.shield(other.made))
        try:
            yield Pair(transport, other.transport, protocol, other)
        finally:
            for end in (protocol, other):
                # stock asyncio raises AttributeError when a transport that has gone is aborted
                if not end.lost.done():
                    end.transport.abort()


@contextlib.contextmanager
def collected_errors() -> Iterator[list[dict[str, Any]]]:
    """What reaches the running loop's exception handler."""
    loop = asyncio.get_running_loop()
    contexts: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: contexts.append(context))
    try:
        yield contexts
    finally:
        loop.set_exception_handler(None)


@contextlib.contextmanager
def logged() -> Iterator[list[logging.LogRecord]]:
    """What asyncio logs."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign, assignment]
    logger = logging.getLogger("asyncio")
    logger.addHandler(handler)
    try:
        yield records
    finally:
        logger.removeHandler(handler)


def open_fds() -> set[int]:
    return {int(name) for name in os.listdir("/proc/self/fd")}


def server_tls(**options: Any) -> ssl.SSLContext:
    """The server's side of TLS for `localhost`; trusts our CA for client certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTS / "localhost.pem", CERTS / "localhost.key")
    context.load_verify_locations(CERTS / "ca.pem")
    for name, value in options.items():
        setattr(context, name, value)
    return context


def client_tls(with_certificate: bool = False) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(CERTS / "ca.pem"))
    if with_certificate:
        context.load_cert_chain(CERTS / "localhost.pem", CERTS / "localhost.key")
    return context


def raises(
    error: type[BaseException], function: Callable[..., Any], *args: Any, **kwargs: Any
) -> BaseException:
    """The error of this type that the call raises; anything else fails the check."""
    try:
        result = function(*args, **kwargs)
    except error as raised:
        return raised
    raise AssertionError(f"{error.__name__} was not raised, but {result!r} returned")


async def raises_async(error: type[BaseException], awaitable: Awaitable[Any]) -> BaseException:
    try:
        result = await awaitable
    except error as raised:
        return raised
    raise AssertionError(f"{error.__name__} was not raised, but {result!r} returned")
