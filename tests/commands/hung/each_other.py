"""Two tasks that await each other. Healthy: one of them has a timeout."""

import asyncio
import sys
from typing import Any

tasks: list[Any] = []


async def one() -> None:
    await asyncio.sleep(0)
    await tasks[1]  # stuck here


async def other() -> None:
    await asyncio.sleep(0)
    if "healthy" in sys.argv:
        await asyncio.wait_for(tasks[0], 3600)
    await tasks[0]  # stuck here


async def main() -> None:
    tasks.extend([asyncio.create_task(one(), name="one"), asyncio.create_task(other(), name="other")])
    for _ in range(10):
        await asyncio.sleep(0)
    print("ready", flush=True)
    await asyncio.wait(tasks)


asyncio.run(main())
