"""A pipeline over three loops: one makes, one works, one collects, with a bounded cross-loop queue between each two."""

import asyncio

import uringloop
from uringloop import QueueShutDown

numbers: uringloop.Queue[int] = uringloop.Queue(maxsize=8)  # who is too fast waits
squares: uringloop.Queue[int] = uringloop.Queue(maxsize=8)


async def make() -> None:
    for number in range(1000):
        await numbers.put(number)
    numbers.shutdown()  # what is in it is still got


async def work() -> None:
    try:
        while True:
            number = await numbers.get()
            await squares.put(number * number)
    except QueueShutDown:
        squares.shutdown()


async def collect() -> int:
    total = 0
    try:
        while True:
            total += await squares.get()
    except QueueShutDown:
        return total


async def main() -> None:
    async with uringloop.Scheduler(workers=3) as scheduler:
        _, _, total = await asyncio.gather(*map(scheduler.submit, (make, work, collect)))
        print("sum of squares", total)


if __name__ == "__main__":
    uringloop.run(main())
