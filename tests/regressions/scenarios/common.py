"""What the scenarios share. A scenario is a small program: it gets a new event loop and returns what it has seen, which
has to be the same on each loop. It waits for events and turns, never for time."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

Log = list[Any]
PATIENCE = 30  # seconds, for what never comes on a loop that is wrong

SCENARIOS: dict[str, Callable[[Any], Log]] = {}


def scenario(function: Callable[[Any], Log]) -> Callable[[Any], Log]:
    SCENARIOS[function.__name__] = function
    return function


class Recorder(asyncio.Protocol):
    def __init__(self, log: Log, name: str = "") -> None:
        self.log, self.name = log, name

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.log.append(self.name + "made")

    def data_received(self, data: bytes) -> None:
        self.log.append((self.name + "data", bytes(data)))

    def eof_received(self) -> bool | None:
        self.log.append(self.name + "eof")
        return None

    def connection_lost(self, error: Exception | None) -> None:
        self.log.append((self.name + "lost", type(error).__name__, getattr(error, "errno", None)))

    def pause_writing(self) -> None:
        self.log.append(self.name + "pause")

    def resume_writing(self) -> None:
        self.log.append(self.name + "resume")


async def connected(loop: Any, log: Log, kind: Any = Recorder) -> tuple[Any, Any, socket.socket]:
    """A transport, its protocol and the other end of its connection, which does not block."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    transport, protocol = await loop.create_connection(lambda: kind(log), sock=ours)
    return transport, protocol, theirs


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("it never came")
        await asyncio.sleep(0)


async def drained(sock: socket.socket) -> tuple[bytes, str]:
    """All that arrives until nothing does for some turns, and how it ended."""
    got, quiet = b"", 0
    while quiet < 20:
        try:
            data = sock.recv(1 << 20)
        except BlockingIOError:
            quiet += 1
            await asyncio.sleep(0)
        except OSError as error:
            return got, type(error).__name__
        else:
            if not data:
                return got, "eof"
            got, quiet = got + data, 0
    return got, "open"


def tell(log: Log, name: object, call: Callable[[], object]) -> Any:
    """Its result, or its exception, is in the log."""
    try:
        result = call()
    except BaseException as error:
        log.append((name, type(error).__name__, str(error)))
        return None
    log.append((name, result))
    return result


async def tell_async(
    log: Log, name: object, call: Callable[[], Awaitable[Any]], show: Callable[[Any], object] = repr
) -> Any:
    """What has not come after some turns is cancelled."""
    try:
        task = asyncio.ensure_future(call())
        for _ in range(200):
            if task.done():
                break
            await asyncio.sleep(0)
        else:
            task.cancel()
        result = await task
    except BaseException as error:
        log.append((name, type(error).__name__, str(error)))
        return None
    log.append((name, show(result)))
    return result


def handled(loop: Any, log: Log) -> None:
    """What the loop's exception handler is told is in the log."""

    def handler(loop: Any, context: dict[str, Any]) -> None:
        log.append(("handler", context["message"], type(context.get("exception")).__name__))

    loop.set_exception_handler(handler)
