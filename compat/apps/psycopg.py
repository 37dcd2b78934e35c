"""psycopg on a PostgreSQL server: it waits by add_reader and add_writer."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool

from compat.behaviours import check
from compat.behaviours.helpers import soon

ROW = "psycopg on PostgreSQL"


async def _connect() -> Any:
    return await soon(psycopg.AsyncConnection.connect(autocommit=True))


@check(ROW)
async def queries_and_transactions() -> None:
    connection = await _connect()
    async with connection, connection.cursor() as cursor:
        await cursor.execute("create temp table items (id serial primary key, data text)")
        await cursor.executemany(
            "insert into items (data) values (%s)", [("x" * number,) for number in range(500)]
        )
        await cursor.execute("select count(*), sum(length(data)) from items")
        assert await cursor.fetchone() == (500, sum(range(500)))
        try:
            async with connection.transaction():
                await cursor.execute("delete from items")
                raise LookupError
        except LookupError:
            pass
        await cursor.execute("select count(*) from items")
        assert await cursor.fetchone() == (500,)


@check(ROW)
async def copy_in_and_out() -> None:
    connection = await _connect()
    async with connection, connection.cursor() as cursor:
        await cursor.execute("create temp table rows (number int, data text)")
        async with cursor.copy("copy rows from stdin") as copy:
            for number in range(50_000):
                await copy.write_row((number, "y" * 20))
        total = 0
        async with cursor.copy("copy rows to stdout") as copy:
            async for _ in copy.rows():
                total += 1
        assert total == 50_000


@check(ROW)
async def notifications() -> None:
    listener, sender = await _connect(), await _connect()
    async with listener, sender:
        await listener.execute("listen news")
        seen = []

        async def listen() -> None:
            async for notify in listener.notifies():
                seen.append(notify.payload)
                if len(seen) == 3:
                    return

        task = asyncio.create_task(listen())
        await asyncio.sleep(0.05)
        for number in range(3):
            await sender.execute(f"notify news, '{number}'")
        await soon(task)
        assert seen == ["0", "1", "2"]


@check(ROW)
async def cancelled_queries() -> None:
    connection = await _connect()
    async with connection:
        for _ in range(3):
            task = asyncio.create_task(connection.execute("select pg_sleep(10)"))
            await asyncio.sleep(0.05)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await soon(task)
            cursor = await soon(connection.execute("select 1"))
            assert await cursor.fetchone() == (1,)


@check(ROW)
async def pool_under_load() -> None:
    async with AsyncConnectionPool("", min_size=2, max_size=10, open=False) as pool:

        async def ask(number: int) -> int:
            async with pool.connection() as connection:
                cursor = await connection.execute("select %s::int", (number,))
                row = await cursor.fetchone()
                return int(row[0])  # type: ignore[index]

        assert await soon(asyncio.gather(*(ask(number) for number in range(300))), 20) == list(range(300))
