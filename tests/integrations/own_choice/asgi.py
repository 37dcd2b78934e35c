"""An ASGI application that prints, in each worker process, the loop on which it starts, and answers with it."""

import asyncio
import os
from typing import Any


def report() -> str:
    loop = type(asyncio.get_running_loop())
    return f"{loop.__module__}.{loop.__name__}"


def announce() -> None:
    os.write(1, f"worker {os.getpid()}: {report()}\n".encode())  # in one call: workers share the pipe


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        while True:
            event = (await receive())["type"]
            if event == "lifespan.startup":
                announce()
            await send({"type": f"{event}.complete"})
            if event == "lifespan.shutdown":
                return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
    await send({"type": "http.response.body", "body": report().encode()})
