"""A Tornado application: its IOLoop is asyncio's loop, so ours runs it (needs tornado). tornado_app.py [PORT]"""

import asyncio
import signal
import sys

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

import uringloop


class WhichLoop(RequestHandler):
    async def get(self) -> None:
        loop = type(asyncio.get_running_loop())
        self.write(f"{loop.__module__}.{loop.__name__}\n")


async def main(port: int) -> None:
    server = HTTPServer(Application([("/", WhichLoop)]))
    sockets = bind_sockets(port, "127.0.0.1")
    server.add_sockets(sockets)
    print(f"http://127.0.0.1:{sockets[0].getsockname()[1]}", flush=True)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    server.stop()
    await server.close_all_connections()


if __name__ == "__main__":
    uringloop.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 8000))
