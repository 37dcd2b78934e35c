"""aiohttp on every core: one port, a web server per loop, one counter (needs aiohttp). web_many_loops.py [PORT]"""

import asyncio
import signal
import sys

from aiohttp import web

import uringloop

visits = uringloop.Guarded([0])


async def count(value: list[int]) -> int:
    value[0] += 1
    return value[0]


async def handle(request: web.BaseRequest) -> web.Response:
    return web.Response(text=f"visit {await visits.run(count)}\n")


servers: dict[asyncio.AbstractEventLoop, web.Server] = {}  # one per loop


def protocol() -> asyncio.Protocol:
    """Called on the loop that has the connection: aiohttp's server there makes the protocol."""
    loop = asyncio.get_running_loop()
    if loop not in servers:
        servers[loop] = web.Server(handle)
    made: asyncio.Protocol = servers[loop]()
    return made


def main(port: int) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])  # taken below
    with uringloop.Scheduler(workers=2) as scheduler:
        served = scheduler.serve(None, "127.0.0.1", port, protocol_factory=protocol)
        print(f"listening on {served.port}", flush=True)
        signal.sigwait([signal.SIGTERM, signal.SIGINT])
        served.close()
        for loop, server in list(servers.items()):
            asyncio.run_coroutine_threadsafe(server.shutdown(5), loop).result()
        scheduler.stop(timeout=10)
    print("stopped")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
