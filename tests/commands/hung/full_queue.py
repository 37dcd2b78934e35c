"""A producer and no consumer. Healthy: a consumer that is slow."""

import asyncio
import sys

import uringloop

jobs: uringloop.Queue[int] = uringloop.Queue(1)


async def consume() -> None:
    while True:
        await jobs.get()
        await asyncio.sleep(3600)


async def main() -> None:
    if "healthy" in sys.argv:
        asyncio.create_task(consume(), name="consumer")
    await jobs.put(1)
    await asyncio.sleep(0)
    if "healthy" in sys.argv:
        await jobs.put(2)
    print("ready", flush=True)
    await jobs.put(3)  # stuck here


uringloop.run(main())
