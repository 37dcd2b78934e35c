"""Datagram endpoints for tests: protocols that remember what they were told; all are closed in the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Recorder(asyncio.DatagramProtocol):
    """Keeps everything it is told."""

    def __init__(self) -> None:
        self.received: list[tuple[bytes, Any]] = []
        self.errors: list[Exception] = []
        self.flow: list[str] = []
        self.news = asyncio.Event()
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.received.append((data, addr))
        self.news.set()

    def error_received(self, error: Exception) -> None:
        self.errors.append(error)
        self.news.set()

    def pause_writing(self) -> None:
        self.flow.append("pause")

    def resume_writing(self) -> None:
        self.flow.append("resume")

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set_result(error)

    async def until(self, condition: Callable[[], Any]) -> None:
        while not condition():
            self.news.clear()
            await self.news.wait()


class Echo(Recorder):
    def datagram_received(self, data: bytes, addr: Any) -> None:
        super().datagram_received(data, addr)
        self.transport.sendto(data, addr)


class Endpoints:
    """Makes endpoints and closes them all in the end."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._made: list[Recorder] = []

    async def make(self, protocol: Any = Recorder, **arguments: Any) -> Any:
        _, made = await self._loop.create_datagram_endpoint(protocol, **arguments)
        self._made.append(made)
        return made

    async def close(self) -> None:
        for made in self._made:
            if not made.lost.done():
                made.transport.abort()
            await made.lost


def run_with_endpoints(
    loop: asyncio.AbstractEventLoop, main: Callable[[Endpoints], Coroutine[Any, Any, None]]
) -> None:
    async def all_of_it() -> None:
        endpoints = Endpoints(loop)
        try:
            await main(endpoints)
        finally:
            await endpoints.close()

    loop.run_until_complete(asyncio.wait_for(all_of_it(), 20))
