"""Tasks that wait for a notification that never comes. Healthy: the task that notifies them waits for a timer."""

import asyncio
import sys

import uringloop

changed = uringloop.Condition()


async def wait() -> None:
    async with changed:
        await changed.wait()  # stuck here


async def notify() -> None:
    async with changed:
        await asyncio.sleep(3600)
        changed.notify_all()


async def main() -> None:
    tasks = [asyncio.create_task(wait()) for _ in range(2)]
    if "healthy" in sys.argv:
        tasks.append(asyncio.create_task(notify(), name="notifier"))
    for _ in range(10):
        await asyncio.sleep(0)
    print("ready", flush=True)
    await asyncio.gather(*tasks)


uringloop.run(main())
