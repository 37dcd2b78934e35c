"""Finding tasks that nothing will ever wake: a deadlock, and an answer that no code is left to set."""

import asyncio

import uringloop
from uringloop.inspect import find_stuck


class Connection:
    answer: asyncio.Future[bytes]  # the reader of the connection sets it


async def request(connection: Connection) -> bytes:
    connection.answer = asyncio.get_running_loop().create_future()
    return await connection.answer  # its reader has ended before, and nothing else sets the answer


async def transfer(first: uringloop.Lock, second: uringloop.Lock) -> None:
    async with first:
        await asyncio.sleep(0)
        async with second:
            pass


async def main() -> None:
    red, blue = uringloop.Lock(), uringloop.Lock()
    tasks = {
        asyncio.create_task(request(Connection()), name="request"),
        asyncio.create_task(transfer(red, blue), name="there"),
        asyncio.create_task(transfer(blue, red), name="back"),
    }
    await asyncio.sleep(0.01)
    for stuck in find_stuck():  # or URINGLOOP_DEBUG=stuck, and nothing in the program
        print(stuck.kind, *sorted(task.name for task in stuck.tasks))
    for task in tasks:
        task.cancel()


if __name__ == "__main__":
    uringloop.run(main())
