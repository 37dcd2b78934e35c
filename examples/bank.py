"""An account that tasks of four loops, in four threads, pay into and draw from: one Lock, shared by all of them."""

import asyncio

import uringloop

lock = uringloop.Lock()
balance = 0


async def pay(amount: int) -> None:
    global balance
    async with lock:  # of any loop, first come first served
        before = balance
        await asyncio.sleep(0)  # others run now; without the lock, money is lost here
        balance = before + amount


def main() -> None:
    with uringloop.Scheduler(workers=4) as scheduler:
        jobs = [scheduler.submit(pay, amount) for amount in range(-100, 201)]
        for job in jobs:
            job.result()
    print("balance", balance)


if __name__ == "__main__":
    main()
