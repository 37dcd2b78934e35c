"""A job that waits for its own end. Healthy: it waits for a timer."""

import asyncio
import sys
from typing import Any

import uringloop

submitted: list[Any] = []
begin = uringloop.Event()


async def job() -> None:
    await begin.wait()
    if "healthy" in sys.argv:
        await asyncio.sleep(3600)
    await submitted[0]  # stuck here


with uringloop.Scheduler(2) as scheduler:
    submitted.append(scheduler.submit(job, name="report"))
    begin.set()
    print("ready", flush=True)
    submitted[0].result()
