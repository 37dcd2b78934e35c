"""A Quart application under hypercorn; it says which loop it runs on (needs quart). quart_app.py [PORT]"""

import asyncio
import signal
import sys

from hypercorn.asyncio import serve
from hypercorn.config import Config
from quart import Quart

import uringloop

app = Quart(__name__)


@app.get("/")
async def which_loop() -> str:
    loop = type(asyncio.get_running_loop())
    return f"{loop.__module__}.{loop.__name__}\n"


async def main(port: int) -> None:
    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await serve(app, config, shutdown_trigger=stop.wait)


if __name__ == "__main__":
    uringloop.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 8000))
