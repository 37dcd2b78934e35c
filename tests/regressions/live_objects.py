"""Makes objects of compiled classes as programs get them, and calls everything they have, private methods too, with
odd arguments. Any exception is right; a crash is not.

    python live_objects.py KIND PROGRESS [SKIPPED ...]

KIND is the name of a function below. The rest is as in objects_without_init.py."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from objects_without_init import NOT_CALLED, Calls, prepare

import uringloop
from uringloop._core.tls.connection import TlsConnection
from uringloop._core.tls.transport import TlsTransport
from uringloop.files import FixedBuffers

Makers = dict[str, Callable[[], Awaitable[Any]]]


class Application(asyncio.Protocol):
    pass


async def handles() -> Makers:
    loop = asyncio.get_running_loop()

    async def waiting() -> Any:
        return loop.call_soon(int)

    async def cancelled() -> Any:
        handle = loop.call_soon(int)
        handle.cancel()
        return handle

    async def ran() -> Any:
        handle = loop.call_soon(int)
        await asyncio.sleep(0)
        return handle

    async def timer() -> Any:
        return loop.call_later(1000, int)

    async def reader() -> Any:
        ours, _ = socket.socketpair()
        return loop._add_reader(ours, int)  # type: ignore[attr-defined]

    return {"waiting": waiting, "cancelled": cancelled, "ran": ran, "timer": timer, "reader": reader}


async def transports() -> Makers:
    loop = asyncio.get_running_loop()

    async def stream() -> Any:
        ours, theirs = socket.socketpair()
        transport, _ = await loop.connect_accepted_socket(Application, ours)
        transport._theirs = theirs  # type: ignore[attr-defined]
        return transport

    async def lost() -> Any:
        transport = await stream()
        transport.abort()
        await asyncio.sleep(0)
        return transport

    async def datagram() -> Any:
        transport, _ = await loop.create_datagram_endpoint(
            asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0)
        )
        return transport

    return {"stream": stream, "lost": lost, "datagram": datagram}


async def tls() -> Makers:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    keep: list[Any] = []

    async def connection() -> Any:
        loop = asyncio.get_running_loop()
        return TlsConnection(loop, Application(), context, None, False, "localhost", True, 10, 10)

    async def transport() -> Any:
        return TlsTransport(await connection())

    async def shaking_hands() -> Any:
        ours, theirs = socket.socketpair()
        made = await connection()
        carrier, _ = await asyncio.get_running_loop().connect_accepted_socket(lambda: made, ours)
        keep.append((carrier, theirs))
        return made

    async def records() -> Any:
        return (await connection()).records

    async def application() -> Any:
        return (await connection()).application

    return {
        "connection": connection,
        "transport": transport,
        "shaking_hands": shaking_hands,
        "records": records,
        "application": application,
    }


async def files() -> Makers:
    path = os.path.join(tempfile.mkdtemp(), "file")

    def opener(mode: str, used: bool) -> Callable[[], Awaitable[Any]]:
        async def opened() -> Any:
            with open(path, "wb") as file:
                file.write(b"line\n" * 5000)
            found = await uringloop.open_file(path, mode)
            if used:
                await found.read(3)
            return found

        return opened

    async def closed() -> Any:
        found = await opener("r+b", True)()
        await found.close()
        return found

    async def descriptor() -> Any:
        return (await opener("r+b", False)()).descriptor

    async def call() -> Any:
        return (await opener("r+b", False)()).read()

    return {
        "binary": opener("r+b", True),
        "new": opener("r+b", False),
        "unbuffered": opener("r+b", True),
        "text": opener("r+", True),
        "closed": closed,
        "descriptor": descriptor,
        "call": call,
    }


async def primitives() -> Makers:
    async def place() -> Any:
        lock = uringloop.Lock()
        await lock.acquire()
        return lock.acquire()

    async def waiter() -> Any:
        return (await place()).__await__()

    async def entry() -> Any:
        return uringloop.Lock().__aenter__()

    async def buffers() -> Any:
        return FixedBuffers(2, 100)

    async def lent() -> Any:
        return (await FixedBuffers(2, 100).lend()).obj

    async def queue() -> Any:
        return uringloop.PriorityQueue(1)

    async def line() -> Any:
        return uringloop.Condition()._line

    return {
        "place": place,
        "waiter": waiter,
        "entry": entry,
        "buffers": buffers,
        "lent": lent,
        "queue": queue,
        "line": line,
    }


async def operations() -> Makers:
    loop = asyncio.get_running_loop()

    def pair() -> tuple[socket.socket, socket.socket]:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        return ours, theirs

    async def receiving() -> Any:
        ours, theirs = pair()
        found = loop.sock_recv(ours, 10)
        with suppress(Exception):
            found.keep = theirs  # type: ignore[attr-defined]
        return found

    async def waiting() -> Any:
        ours, _ = pair()
        found = loop.sock_recv(ours, 10)
        found.send(None)  # type: ignore[attr-defined]
        return found

    async def refs() -> Any:
        ours, _ = pair()
        loop.sock_recv(ours, 10).send(None)  # type: ignore[attr-defined]
        return ours._io_refs  # type: ignore[attr-defined]

    async def watching() -> Any:
        ours, _ = pair()
        loop.add_reader(ours, int)
        return loop._readers._set  # type: ignore[attr-defined]

    async def watched() -> Any:
        ours, _ = pair()
        loop.add_reader(ours, int)
        return loop._readers._set.registrations[ours.fileno()]  # type: ignore[attr-defined]

    async def accepting() -> Any:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        (listener,) = [
            it
            for sock, it in loop._listeners.items()  # type: ignore[attr-defined]
            if sock.fileno() == server.sockets[0].fileno()
        ]
        return listener._accept

    async def reading() -> Any:
        ours, _ = pair()
        reader, _ = await asyncio.open_connection(sock=ours)
        return reader.read(10)

    return {
        "receiving": receiving,
        "waiting": waiting,
        "refs": refs,
        "watching": watching,
        "watched": watched,
        "accepting": accepting,
        "reading": reading,
    }


async def engines() -> Makers:
    loop = asyncio.get_running_loop()

    async def engine() -> Any:
        return loop.engine  # type: ignore[attr-defined]

    async def ops() -> Any:
        return loop.engine.ops  # type: ignore[attr-defined]

    async def table() -> Any:
        return loop._transports  # type: ignore[attr-defined]

    return {"engine": engine, "ops": ops, "table": table}


def loops(calls: Calls) -> None:
    """A loop that does not run: not yet, or no more."""

    def new() -> Any:
        return uringloop.new_event_loop()

    def used() -> Any:
        loop = uringloop.new_event_loop()
        loop.run_until_complete(asyncio.sleep(0))
        return loop

    def closed() -> Any:
        loop = used()
        loop.close()
        return loop

    for make in (new, used, closed):
        for name in dir(uringloop.EventLoop):
            if name not in NOT_CALLED:
                asyncio._set_running_loop(None)  # type: ignore[arg-type]  # an interrupted run has left its own
                loop = make()
                calls.attribute(f"loop {make.__name__}.{name}", name, loop)
                with suppress(Exception):
                    loop.close()


async def everything(kind: str, calls: Calls) -> None:
    makers = await globals()[kind]()
    for label, make in makers.items():
        # __class__ may name asyncio's class, and dir() believes it
        for name in sorted({*dir(type(await make())), *dir(await make())}):
            if name not in NOT_CALLED:
                found = await make()
                calls.attribute(f"{kind} {label}.{name}", name, found)
                del found
                for _ in range(3):
                    await asyncio.sleep(0)


if __name__ == "__main__":
    kind, progress, *skipped = sys.argv[1:]
    calls = Calls(prepare(progress), set(skipped))
    if kind == "loops":
        loops(calls)
    else:
        uringloop.run(everything(kind, calls))
    calls.end()
