"""Tasks in line for a lock, whose holder waits for a queue that no task fills. Healthy: a timer fills it."""

import asyncio
import sys

import uringloop

pool = uringloop.Lock()
jobs: uringloop.Queue[int] = uringloop.Queue()


async def refresh() -> None:
    async with pool:
        await jobs.get()  # stuck here


async def use() -> None:
    async with pool:
        pass


async def main() -> None:
    if "healthy" in sys.argv:
        asyncio.get_running_loop().call_later(3600, jobs.put_nowait, 1)
    tasks = [asyncio.create_task(refresh(), name="refresh"), *(asyncio.create_task(use()) for _ in range(12))]
    while pool.statistics()["waiting"] != 12:
        await asyncio.sleep(0)
    print("ready", flush=True)
    await asyncio.gather(*tasks)


uringloop.run(main())
