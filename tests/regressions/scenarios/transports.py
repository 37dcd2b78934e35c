"""Scenarios: transports and their protocols."""

from __future__ import annotations

import array
import asyncio
import os
import socket
import struct
from collections.abc import Callable
from typing import Any

from tests.regressions.scenarios.common import (
    Log,
    Recorder,
    connected,
    drained,
    handled,
    scenario,
    tell,
    turns,
    until,
)


@scenario
def methods_of_a_transport_whose_loop_is_closed(loop: Any) -> Log:
    log: Log = []
    transport, _, _ = loop.run_until_complete(connected(loop, log))
    loop.close()
    for name in (
        "pause_reading",
        "resume_reading",
        "is_closing",
        "close",
        "is_closing",
        "abort",
        "is_reading",
    ):
        tell(log, name, getattr(transport, name))
    tell(log, "write", lambda: transport.write(b"x"))
    return log


@scenario
def write_when_the_loop_is_closed(loop: Any) -> Log:
    log: Log = []
    transport, _, other = loop.run_until_complete(connected(loop, log))
    loop.close()
    tell(log, "write", lambda: transport.write(b"x"))
    tell(log, "arrived", lambda: other.recv(10))
    return log


@scenario
def write_and_a_peer_that_is_asked_at_once(loop: Any) -> Log:
    log: Log = []

    async def main() -> None:
        transport, _, other = await connected(loop, log)
        transport.write(b"ping")
        tell(log, "arrived", lambda: other.recv(10))
        transport.abort()
        await turns()

    loop.run_until_complete(main())
    return log


@scenario
def write_close_write(loop: Any) -> Log:
    log: Log = []

    async def main() -> None:
        transport, _, other = await connected(loop, log)
        transport.write(b"1")
        transport.close()
        transport.write(b"2")
        log.append(transport.get_write_buffer_size())
        log.append(await drained(other))

    loop.run_until_complete(main())
    return log


@scenario
def close_in_pause_writing(loop: Any) -> Log:
    log: Log = []

    class Closing(Recorder):
        def pause_writing(self) -> None:
            super().pause_writing()
            self.transport.close()

    async def main() -> None:
        transport, _, other = await connected(loop, log, Closing)
        transport.write(b"x" * 5_000_000)
        log.append(transport.is_closing())
        data, end = await drained(other)
        log.append((len(data), end))
        await turns()

    loop.run_until_complete(main())
    return log


@scenario
def abort_in_resume_writing(loop: Any) -> Log:
    log: Log = []

    class Aborting(Recorder):
        def resume_writing(self) -> None:
            super().resume_writing()
            self.transport.abort()

    async def main() -> None:
        transport, _, other = await connected(loop, log, Aborting)
        transport.write(b"x" * 3_000_000)
        log.append((await drained(other))[1])
        await turns()

    loop.run_until_complete(main())
    return log


@scenario
def raise_in_pause_and_resume_writing(loop: Any) -> Log:
    log: Log = []
    handled(loop, log)

    class Raising(Recorder):
        def pause_writing(self) -> None:
            raise ValueError("pause")

        def resume_writing(self) -> None:
            raise ValueError("resume")

    async def main() -> None:
        transport, _, other = await connected(loop, log, Raising)
        transport.write(b"x" * 1_000_000)
        await drained(other)
        transport.abort()
        await turns()

    loop.run_until_complete(main())
    return log


class Buffered(asyncio.BufferedProtocol):
    """Gives what `get` returns."""

    def __init__(self, log: Log, get: Callable[[Any, int], Any]) -> None:
        self.log, self.get = log, get

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def get_buffer(self, size: int) -> Any:
        self.log.append("get_buffer")
        return self.get(self, size)

    def buffer_updated(self, size: int) -> None:
        self.log.append(("updated", size))

    def eof_received(self) -> None:
        self.log.append("eof")

    def connection_lost(self, error: Exception | None) -> None:
        self.log.append(("lost", type(error).__name__))


async def buffered(loop: Any, log: Log, get: Callable[[Any, int], Any]) -> None:
    transport, _, other = await connected(loop, log, lambda log: Buffered(log, get))
    other.send(b"abcdefgh")
    await turns()
    transport.abort()
    await turns()
    other.close()


@scenario
def get_buffer_sets_another_protocol(loop: Any) -> Log:
    log: Log = []
    handled(loop, log)

    def get(self: Any, size: int) -> bytearray:
        self.transport.set_protocol(Recorder(self.log, "new "))
        return bytearray(4)

    loop.run_until_complete(buffered(loop, log, get))
    return log


@scenario
def get_buffer_closes(loop: Any) -> Log:
    log: Log = []

    def get(self: Any, size: int) -> bytearray:
        self.transport.close()
        return bytearray(4)

    loop.run_until_complete(buffered(loop, log, get))
    return log


@scenario
def get_buffer_returns_odd_things(loop: Any) -> Log:
    log: Log = []
    handled(loop, log)
    things: list[Any] = [
        b"read only",
        None,
        5,
        bytearray(0),
        memoryview(b"read only"),
        memoryview(bytearray(10))[::2],
        array.array("I", [0, 0]),
        memoryview(array.array("d", [0.0] * 2)),
        [1, 2],
        "text",
    ]
    for number, thing in enumerate(things):
        log.append(number)
        loop.run_until_complete(buffered(loop, log, lambda self, size, thing=thing: thing))
    return log


@scenario
def raise_in_eof_received(loop: Any) -> Log:
    log: Log = []
    handled(loop, log)

    class Raising(Recorder):
        def eof_received(self) -> None:
            super().eof_received()
            raise KeyError(1)

    async def main() -> None:
        _, _, other = await connected(loop, log, Raising)
        other.send(b"x")
        other.shutdown(socket.SHUT_WR)
        await turns()

    loop.run_until_complete(main())
    return log


@scenario
def set_protocol_in_eof_received(loop: Any) -> Log:
    log: Log = []

    class Changing(Recorder):
        def eof_received(self) -> bool:
            super().eof_received()
            self.transport.set_protocol(Recorder(self.log, "second "))
            return True

    async def main() -> None:
        transport, _, other = await connected(loop, log, Changing)
        other.shutdown(socket.SHUT_WR)
        await turns()
        transport.write(b"still")
        await turns()
        tell(log, "arrived", lambda: other.recv(10))
        transport.close()
        await turns()

    loop.run_until_complete(main())
    return log


@scenario
def use_in_and_after_connection_lost(loop: Any) -> Log:
    log: Log = []
    names = (
        "close",
        "abort",
        "write_eof",
        "pause_reading",
        "resume_reading",
        "get_write_buffer_size",
        "is_reading",
    )

    class Using(Recorder):
        def connection_lost(self, error: Exception | None) -> None:
            super().connection_lost(error)
            tell(log, "write", lambda: self.transport.write(b"x"))
            for name in names:
                tell(log, name, getattr(self.transport, name))

    async def main() -> None:
        transport, _, other = await connected(loop, log, Using)
        other.close()
        await turns()
        tell(log, "write", lambda: transport.write(b"x"))
        for name in ("close", "write_eof", "abort"):
            tell(log, name, getattr(transport, name))
        tell(log, "get_protocol", lambda: type(transport.get_protocol()).__name__)
        tell(log, "set_protocol", lambda: transport.set_protocol(None))

    loop.run_until_complete(main())
    return log


@scenario
def reset_while_reading_is_paused(loop: Any) -> Log:
    log: Log = []
    made: list[Any] = []

    class Paused(Recorder):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            transport.pause_reading()
            made.append(transport)

    async def main() -> None:
        server = await loop.create_server(lambda: Paused(log), "127.0.0.1", 0)
        client = socket.create_connection(server.sockets[0].getsockname())
        client.send(b"data")
        await until(lambda: made)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        await turns()
        log.append("still there")
        server.close()
        made[0].resume_reading()
        await until(lambda: len(log) > 2)

    loop.run_until_complete(main())
    return log


@scenario
def types_of_what_is_written_and_limits(loop: Any) -> Log:
    log: Log = []

    async def main() -> None:
        transport, _, other = await connected(loop, log)
        for name, data in (("array", array.array("I", [1])), ("int", 5), ("None", None)):
            tell(log, name, lambda data=data: transport.write(data))
        for name, lines in (
            ("lines", [b"a", bytearray(b"b"), memoryview(b"c")]),
            ("bad line", [b"a", 5]),
            ("generator", (line for line in (b"d", b"e"))),
            ("text", "ab"),
        ):
            tell(log, name, lambda lines=lines: transport.writelines(lines))
        for limits in ({"high": -1}, {"high": 1, "low": 5}, {"low": 3}, {"high": 0}, {"high": "x"}):
            tell(log, str(limits), lambda limits=limits: transport.set_write_buffer_limits(**limits))
            tell(log, "limits", transport.get_write_buffer_limits)
        tell(log, "last", lambda: transport.write(b"z"))
        await turns()
        transport.close()
        log.append(await drained(other))

    loop.run_until_complete(main())
    return log


@scenario
def descriptor_of_a_transport_closed_beneath_it(loop: Any) -> Log:
    log: Log = []

    async def main() -> None:
        transport, _, other = await connected(loop, log)
        os.close(transport.get_extra_info("socket").fileno())
        transport.write(b"x")
        await turns()
        transport.abort()
        await turns()
        log.append(await drained(other))

    try:
        loop.run_until_complete(main())
    except OSError as error:
        log.append(type(error).__name__)
    return log


@scenario
def servers_whose_protocols_fail(loop: Any) -> Log:
    log: Log = []
    handled(loop, log)

    class Raising(Recorder):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            raise ValueError("made")

    def failing() -> Any:
        raise ValueError("factory")

    async def main() -> None:
        for factory in (failing, lambda: Raising(log), lambda: None):
            server = await loop.create_server(factory, "127.0.0.1", 0)
            client = socket.create_connection(server.sockets[0].getsockname())
            client.setblocking(False)
            client.send(b"hi")
            await turns(100)
            log.append(await drained(client))
            client.close()
            await turns(100)
            server.close()

    loop.run_until_complete(main())
    return log
