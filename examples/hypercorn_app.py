"""hypercorn's `-k` knows asyncio's loop and uvloop's only; its `serve` runs on any. hypercorn_app.py [PORT]"""

import asyncio
import signal
import sys

from asgi_app import app
from hypercorn.asyncio import serve
from hypercorn.config import Config

import uringloop


async def main(port: int) -> None:
    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await serve(app, config, shutdown_trigger=stop.wait)


if __name__ == "__main__":
    uringloop.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 8000))
