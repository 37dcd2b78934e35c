"""Hand coroutines to loops in other threads, and wait for them: in a thread, or on any loop."""

import asyncio

import uringloop


async def handle(request: int) -> str:
    context = uringloop.current_context()
    assert context is not None
    await asyncio.sleep(0.001)
    return f"request {request} on a loop of {context.name.rpartition('-')[0]}"


async def on_another_loop(scheduler: uringloop.Scheduler) -> None:
    print(await scheduler.submit(handle, 2))  # cancelling who awaits a job cancels the job


async def together(scheduler: uringloop.Scheduler) -> None:
    async with scheduler.group() as group:  # a failed job cancels the others
        jobs = [group.submit(handle, number) for number in (5, 6)]
    print(*(job.result() for job in jobs), sep="\n")


def main() -> None:
    with uringloop.Scheduler(workers=4, dispatch="least_loaded", name="work") as scheduler:
        job = scheduler.submit(handle(1), key="user 7")  # from any thread; one key, one thread
        print(job.result(timeout=30))
        asyncio.run(on_another_loop(scheduler))  # an asyncio loop, for once
        print(*scheduler.map(handle, [3, 4]), sep="\n")
        uringloop.run(together(scheduler))


if __name__ == "__main__":
    main()
