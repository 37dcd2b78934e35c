"""Three jobs on two loops that take three locks in a circle. Healthy: one of them waits for a timer."""

import asyncio
import sys

import uringloop

locks = [first, second, third] = [uringloop.Lock() for _ in range(3)]
barrier = uringloop.Barrier(3)


async def job(number: int) -> None:
    async with locks[number]:
        await barrier.wait()
        if number == 2 and "healthy" in sys.argv:
            await asyncio.sleep(3600)
        async with locks[(number + 1) % 3]:  # stuck here
            pass


with uringloop.Scheduler(2, stealing=False) as scheduler:
    jobs = [scheduler.submit(job, number) for number in range(3)]
    print("ready", flush=True)
    jobs[2].result()
