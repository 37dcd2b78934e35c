"""No more than three requests at a time, over all loops of the program: a Semaphore that belongs to none of them."""

import asyncio

import uringloop

limit = uringloop.Semaphore(3)
under_way, most = 0, 0
count = uringloop.Lock()


async def request(number: int) -> int:
    global under_way, most
    async with limit:
        async with count:
            under_way += 1
            most = max(most, under_way)
        await asyncio.sleep(0.001)  # the request
        async with count:
            under_way -= 1
    return number


def main() -> None:
    with uringloop.Scheduler(workers=4) as scheduler:
        answers = list(scheduler.map(request, range(100)))
    print(len(answers), "answers, at most", most, "requests at a time")


if __name__ == "__main__":
    main()
