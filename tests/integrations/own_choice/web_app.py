"""The same as asgi.py with aiohttp, and with sanic."""

from asgi import announce, report


def aiohttp_app():  # type: ignore[no-untyped-def]
    from aiohttp import web

    async def start(app: web.Application) -> None:
        announce()

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=report())

    app = web.Application()
    app.on_startup.append(start)
    app.router.add_get("/", answer)
    return app


def sanic_app():  # type: ignore[no-untyped-def]
    from sanic import Sanic, text

    app = Sanic("own_choice")

    @app.before_server_start
    async def start(app: object) -> None:
        announce()

    @app.get("/")
    async def answer(request: object) -> object:
        return text(report())

    return app
