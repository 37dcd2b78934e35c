"""The servers of the applications' rows: uvicorn (httptools), FastAPI, aiohttp and websockets, each with the smallest
application."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

BODY = b"Hello, world!"


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """The ASGI application: 13 bytes of text."""
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(BODY))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": BODY})


def listening() -> socket.socket:
    # the protocol is named, because asyncio sets TCP_NODELAY only on sockets that say they are TCP
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    listener.setblocking(False)
    return listener


async def serve(kind: str, tell: Callable[[int], None]) -> None:
    listener = listening()
    port = listener.getsockname()[1]
    if kind in ("uvicorn", "fastapi"):
        served = application if kind == "uvicorn" else fastapi_application()
        await serve_uvicorn(served, listener, lambda: tell(port))
        return
    if kind == "aiohttp":
        await serve_aiohttp(listener)
    else:
        await serve_websocket(listener)
    tell(port)
    await asyncio.Event().wait()


def fastapi_application() -> Any:
    """A handler with a parameter of the path, which FastAPI checks, and an answer in JSON."""
    from fastapi import FastAPI

    app = FastAPI(openapi_url=None)

    @app.get("/{name}")  # type: ignore[untyped-decorator]
    async def hello(name: str = "world") -> dict[str, str]:
        return {"hello": name}

    app.add_api_route("/", hello)
    return app


async def serve_websocket(listener: socket.socket) -> None:
    from websockets.asyncio.server import serve as serve_connections

    async def echo(connection: Any) -> None:
        async for message in connection:
            await connection.send(message)

    keep.append(await serve_connections(echo, sock=listener, compression=None))


keep: list[object] = []  # servers that must not be collected


async def serve_uvicorn(served: Any, listener: socket.socket, ready: Callable[[], None]) -> None:
    import uvicorn

    options: dict[str, Any] = {
        "lifespan": "off",
        "log_level": "warning",
        "access_log": False,
        "http": "httptools",
    }

    class Server(uvicorn.Server):  # type: ignore[misc]
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            ready()

    await Server(uvicorn.Config(served, **options)).serve(sockets=[listener])


async def serve_aiohttp(listener: socket.socket) -> None:
    from aiohttp import web

    async def hello(_request: Any) -> Any:
        return web.Response(body=BODY, content_type="text/plain")

    app = web.Application()
    app.router.add_get("/", hello)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.SockSite(runner, listener).start()
