"""An aiohttp application; it says which loop it runs on (needs aiohttp). aiohttp_app.py [PORT]"""

import asyncio
import sys

from aiohttp import web

import uringloop


async def handle(request: web.Request) -> web.Response:
    loop = type(asyncio.get_running_loop())
    return web.Response(text=f"{loop.__module__}.{loop.__name__}\n")


async def make_app() -> web.Application:
    app = web.Application()
    app.router.add_get("/", handle)
    return app


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8080
    web.run_app(make_app(), host="127.0.0.1", port=port, loop=uringloop.new_event_loop())
