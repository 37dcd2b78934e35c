"""A pool of PostgreSQL connections on each of several loops (needs asyncpg). postgres_pool.py DSN"""

import asyncio
import sys
from typing import Any

import asyncpg

import uringloop

pools: dict[Any, Any] = {}  # a pool belongs to the loop that made it


async def pool_of_this_loop(dsn: str) -> Any:
    loop = asyncio.get_running_loop()
    if loop not in pools:
        pools[loop] = asyncio.ensure_future(asyncpg.create_pool(dsn, min_size=1, max_size=4))
    return await pools[loop]


async def add(dsn: str, number: int) -> int:
    pool = await pool_of_this_loop(dsn)
    async with pool.acquire() as connection, connection.transaction():
        return int(await connection.fetchval("select $1::int + $1::int", number))


async def close_pool() -> None:
    pool = pools.pop(asyncio.get_running_loop(), None)
    if pool is not None:
        await (await pool).close()


def main(dsn: str) -> None:
    with uringloop.Scheduler(workers=2) as scheduler:
        jobs = [scheduler.submit(add, dsn, number) for number in range(100)]
        print("sum", sum(job.result() for job in jobs))
        for job in scheduler.broadcast(close_pool):
            job.result()


if __name__ == "__main__":
    main(sys.argv[1])
