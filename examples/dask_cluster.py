"""A Dask cluster of two processes, all of it on uringloop, a Scheduler of two loops inside each worker
(needs distributed)."""

import asyncio
import os
from typing import Any

from distributed import Client, LocalCluster, get_worker

import uringloop

uringloop.install()  # here and in every process of the cluster, which imports this program again


async def fetch(number: int) -> int:
    await asyncio.sleep(0.001)
    return number * number


def chunk(numbers: list[int]) -> tuple[int, int, str]:
    """On a worker: its numbers, spread over two loops of this process."""
    with uringloop.Scheduler(workers=2) as scheduler:
        squares = [job.result() for job in [scheduler.submit(fetch, number) for number in numbers]]
    worker: Any = get_worker()
    return sum(squares), os.getpid(), type(worker.loop.asyncio_loop).__module__


def main() -> None:
    cluster: Any = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    client: Any = Client(cluster)
    with cluster, client:
        chunks = [list(range(start, start + 25)) for start in range(0, 100, 25)]
        workers = list(client.scheduler_info()["workers"])
        futures = [client.submit(chunk, part, workers=workers[i % 2]) for i, part in enumerate(chunks)]
        answers = client.gather(futures)
    print("sum", sum(answer[0] for answer in answers))
    print("processes", len({answer[1] for answer in answers}))
    print("the workers run on", *{answer[2] for answer in answers})


if __name__ == "__main__":
    main()
