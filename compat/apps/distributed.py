"""Dask distributed: a scheduler, two worker processes, a client."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from distributed import Client, LocalCluster

from compat.apps.helpers import child_environment, loop_kind
from compat.behaviours import check
from compat.behaviours.helpers import soon

ROW = "Dask distributed"


def _square(number: int) -> int:
    return number * number


async def _kind() -> str:
    kind = type(asyncio.get_running_loop())
    return f"{kind.__module__}.{kind.__qualname__}"


def _cluster() -> Any:
    # the workers are processes that inherit our environment
    os.environ.update(child_environment())
    return LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, asynchronous=True, dashboard_address=None
    )


@check(ROW)
async def work_goes_to_two_processes() -> None:
    async with _cluster() as cluster, Client(cluster, asynchronous=True) as client:
        futures = client.map(_square, range(200))
        assert await soon(client.gather(futures), 30) == [number * number for number in range(200)]
        pids = await client.run(os.getpid)
        assert len(set(pids.values())) == 2 and os.getpid() not in pids.values()
        kinds = set((await client.run(_kind)).values())
        assert kinds == {loop_kind()}, kinds


@check(ROW)
async def data_moves_between_the_workers() -> None:
    async with _cluster() as cluster, Client(cluster, asynchronous=True) as client:
        workers = list(await client.run(os.getpid))
        parts = [client.submit(bytes, 3_000_000, workers=[worker], pure=False) for worker in workers]
        total = client.submit(lambda *each: sum(map(len, each)), *parts)
        assert await soon(total, 30) == 6_000_000
        scattered = await client.scatter(list(range(1000)), hash=False)
        assert sum(await soon(client.gather(scattered), 30)) == sum(range(1000))


@check(ROW)
async def errors_come_back() -> None:
    async with _cluster() as cluster, Client(cluster, asynchronous=True) as client:
        future = client.submit(divmod, 1, 0)
        try:
            await soon(future.result(), 30)
        except ZeroDivisionError:
            return
        raise AssertionError("no error came back")
