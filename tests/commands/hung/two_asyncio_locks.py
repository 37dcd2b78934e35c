"""Two tasks that take two locks of asyncio in opposite orders. Healthy: one of them waits for a timer."""

import asyncio
import sys

import uringloop

first, second = asyncio.Lock(), asyncio.Lock()
got_first, got_second = asyncio.Event(), asyncio.Event()


async def one() -> None:
    async with first:
        got_first.set()
        await got_second.wait()
        async with second:  # stuck here
            pass


async def other() -> None:
    async with second:
        got_second.set()
        await got_first.wait()
        if "healthy" in sys.argv:
            await asyncio.sleep(3600)
        async with first:  # stuck here
            pass


async def main() -> None:
    tasks = [asyncio.create_task(one(), name="one"), asyncio.create_task(other(), name="other")]
    for _ in range(10):
        await asyncio.sleep(0)
    print("ready", flush=True)
    await asyncio.gather(*tasks)


uringloop.run(main())
