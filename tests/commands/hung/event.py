"""A task that waits for an event that is never set. Healthy: a timer sets it."""

import asyncio
import sys

import uringloop

loaded = uringloop.Event()


async def main() -> None:
    if "healthy" in sys.argv:
        asyncio.get_running_loop().call_later(3600, loaded.set)
    print("ready", flush=True)
    await loaded.wait()  # stuck here


uringloop.run(main())
