"""aiohttp: a server and a client of its own, at work together."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from compat.behaviours import check
from compat.behaviours.helpers import client_tls, server_tls, soon

ROW = "aiohttp"


@asynccontextmanager
async def _serving(ssl: Any = None, path: str | None = None) -> AsyncIterator[str]:
    async def echo(request: web.Request) -> web.StreamResponse:
        return web.Response(body=await request.read())

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for number in range(100):
            await response.write(b"%d," % number * 1000)
        return response

    async def websocket(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        async for message in socket:
            if message.type == aiohttp.WSMsgType.BINARY:
                await socket.send_bytes(message.data)
        return socket

    async def file(request: web.Request) -> web.StreamResponse:
        return web.FileResponse(request.query["path"])

    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/echo", echo)
    app.router.add_get("/stream", stream)
    app.router.add_get("/ws", websocket)
    app.router.add_get("/file", file)
    runner = web.AppRunner(app)
    await runner.setup()
    if path:
        await web.UnixSite(runner, path).start()
        yield "http://localhost"
    else:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=ssl)
        await site.start()
        port = runner.addresses[0][1]
        yield f"{'https://localhost' if ssl else 'http://127.0.0.1'}:{port}"
    await soon(runner.cleanup(), 10)


@check(ROW)
async def bodies_of_every_size() -> None:
    async with _serving() as url, aiohttp.ClientSession(url) as session:
        for size in (0, 1, 70_000, 5_000_000):
            message = os.urandom(size)
            async with session.post("/echo", data=message) as reply:
                assert await reply.read() == message
        async with session.get("/stream") as reply:
            assert await reply.read() == b"".join(b"%d," % number * 1000 for number in range(100))


@check(ROW)
async def files_by_sendfile() -> None:
    with tempfile.NamedTemporaryFile() as big:
        big.write(os.urandom(6_000_000))
        big.flush()
        async with _serving() as url, aiohttp.ClientSession(url) as session:
            async with session.get("/file", params={"path": big.name}) as reply:
                assert await reply.read() == Path(big.name).read_bytes()
            part = {"Range": "bytes=1000-2000999"}
            async with session.get("/file", params={"path": big.name}, headers=part) as reply:
                assert reply.status == 206
                assert await reply.read() == Path(big.name).read_bytes()[1000:2_001_000]


@check(ROW)
async def many_requests_at_once() -> None:
    connector = aiohttp.TCPConnector(limit=100)
    async with _serving() as url, aiohttp.ClientSession(url, connector=connector) as session:

        async def ask(number: int) -> bytes:
            async with session.post("/echo", data=b"%d" % number) as reply:
                return await reply.read()

        replies = await soon(asyncio.gather(*(ask(number) for number in range(1000))), 30)
        assert replies == [b"%d" % number for number in range(1000)]


@check(ROW)
async def websockets_both_ways() -> None:
    async with _serving() as url, aiohttp.ClientSession(url) as session:
        async with session.ws_connect("/ws", max_msg_size=0) as socket:
            for size in (1, 1000, 100_000, 3_000_000):
                message = os.urandom(size)
                await socket.send_bytes(message)
                assert await soon(socket.receive_bytes()) == message


@check(ROW)
async def over_tls() -> None:
    connector = aiohttp.TCPConnector(ssl=client_tls())
    async with _serving(server_tls()) as url, aiohttp.ClientSession(url, connector=connector) as session:
        message = os.urandom(2_000_000)
        async with session.post("/echo", data=message) as reply:
            assert await reply.read() == message


@check(ROW)
async def over_a_unix_socket() -> None:
    path = f"{os.getcwd()}/socket"
    connector = aiohttp.UnixConnector(path)
    async with _serving(path=path) as url, aiohttp.ClientSession(url, connector=connector) as session:
        async with session.post("/echo", data=b"unix") as reply:
            assert await reply.read() == b"unix"


@check(ROW)
async def timeouts_and_dropped_clients() -> None:
    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(slow, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    timeout = aiohttp.ClientTimeout(total=0.2)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for _ in range(5):
            try:
                await session.get(f"http://127.0.0.1:{port}/")
            except TimeoutError:
                continue
            raise AssertionError("no timeout")
    server.close()
