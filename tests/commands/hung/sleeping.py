"""A coroutine that puts its thread to sleep. Healthy: it waits for a timer."""

import asyncio
import sys
import time


async def handler() -> None:
    print("ready", flush=True)
    if "healthy" in sys.argv:
        await asyncio.sleep(3600)
    time.sleep(3600)  # stuck here


asyncio.run(handler())
