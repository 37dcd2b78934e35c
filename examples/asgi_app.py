"""An ASGI application that says which loop it runs on: uvicorn --loop uringloop:new_event_loop asgi_app:app"""

import asyncio
from typing import Any


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return  # no lifespan, no websocket
    loop = type(asyncio.get_running_loop())
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": f"{loop.__module__}.{loop.__name__}\n".encode()})
