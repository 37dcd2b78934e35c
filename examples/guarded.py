"""The same account without a lock to forget: a task passes a function that changes the value, and Guarded calls it."""

import asyncio

import uringloop


async def pay(account: dict[str, int], amount: int) -> int:
    before = account["balance"]
    await asyncio.sleep(0)
    account["balance"] = before + amount
    return account["balance"]


account = uringloop.Guarded({"balance": 0})


async def pay_often(amount: int) -> None:
    for _ in range(25):
        await account.run(pay, amount)  # alone, and in order, whatever loop the caller is on


def main() -> None:
    with uringloop.Scheduler(workers=4) as scheduler:
        for job in scheduler.broadcast(pay_often, 2):
            job.result()
    print("balance", account.run_sync(lambda value: value["balance"]))


if __name__ == "__main__":
    main()
