"""A Starlette application under uvicorn; it says its loop (needs starlette, uvicorn). starlette_app.py [PORT]"""

import asyncio
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route


async def which_loop(request: Request) -> PlainTextResponse:
    loop = type(asyncio.get_running_loop())
    return PlainTextResponse(f"{loop.__module__}.{loop.__name__}\n")


app = Starlette(routes=[Route("/", which_loop)])

if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    uvicorn.run(app, host="127.0.0.1", port=port, loop="uringloop:new_event_loop")
