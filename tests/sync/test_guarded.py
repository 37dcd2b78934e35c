"""Guarded: one at a time, in order, and free again whatever becomes of the caller."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from uringloop.sync.guarded import Guarded


def test_gives_result_and_exception(loop: Any) -> None:
    guarded = Guarded([1])

    async def add(value: list[int], item: int, *, twice: bool = False) -> int:
        await asyncio.sleep(0)
        value += [item] * (1 + twice)
        return len(value)

    async def fail(value: list[int]) -> None:
        raise ZeroDivisionError

    async def main() -> None:
        assert await guarded.run(add, 2, twice=True) == 3
        with pytest.raises(ZeroDivisionError):
            await guarded.run(fail)
        assert guarded.statistics()["locked"] is False

    loop.run_until_complete(main())
    assert guarded.run_sync(len) == 3
    assert repr(guarded) == "<Guarded free waiting=0 value=[1, 2, 2]>"


def test_runs_in_order_one_at_a_time(threads: Any, factories: Any) -> None:
    guarded = Guarded({"busy": False, "total": 0})

    async def work(value: dict[str, Any]) -> None:
        assert not value["busy"]
        value["busy"] = True
        await asyncio.sleep(0)
        value["busy"] = False
        value["total"] += 1

    async def many() -> None:
        await asyncio.gather(*[guarded.run(work) for _ in range(20)])

    for factory in factories:
        threads.loop(many, factory=factory)
    threads.join()
    assert guarded.run_sync(lambda value: value["total"]) == 80


def test_cancelled_in_the_line_never_runs_and_later_runs_to_its_end(loop: Any) -> None:
    guarded, log = Guarded(None), []
    goes_on = asyncio.Event()

    async def work(_: None, name: str) -> None:
        log.append(name)
        await goes_on.wait()
        log.append(f"{name} ended")

    async def main() -> None:
        running, queued, last = [asyncio.create_task(guarded.run(work, name)) for name in "abc"]
        for _ in range(3):
            await asyncio.sleep(0)
        queued.cancel()
        running.cancel()
        await asyncio.wait([queued, running])
        assert log == ["a"]
        goes_on.set()
        await last
        assert log == ["a", "a ended", "c", "c ended"]

    loop.run_until_complete(main())


def test_caller_that_stops_awaiting_does_not_hold_it(loop: Any) -> None:
    guarded = Guarded(0)

    async def work(_: int) -> int:
        await asyncio.sleep(0)
        return 1

    async def main() -> None:
        first = guarded.run(work)
        first.send(None)  # begun, and never polled again
        assert await asyncio.wait_for(guarded.run(work), 5) == 1
        first.close()

    loop.run_until_complete(main())


def test_loop_that_closes_gives_it_back(new_loop: Any) -> None:
    guarded = Guarded(0)
    loop = new_loop()

    async def work(_: int) -> None:
        await asyncio.sleep(100)

    async def begin() -> None:
        coroutine = guarded.run(work)
        coroutine.send(None)
        coroutine.close()

    loop.run_until_complete(begin())
    for task in asyncio.all_tasks(loop):
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    del task
    loop.close()
    gc.collect()
    assert guarded.run_sync(lambda value: value) == 0


def test_exception_after_the_caller_was_cancelled_is_reported(loop: Any) -> None:
    guarded, told = Guarded(0), []

    async def fail(_: int, goes_on: asyncio.Event) -> None:
        await goes_on.wait()
        raise ZeroDivisionError

    async def main() -> None:
        goes_on = asyncio.Event()
        caller = asyncio.create_task(guarded.run(fail, goes_on))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        caller.cancel()
        await asyncio.wait([caller])
        goes_on.set()
        await guarded.run(asyncio.sleep)

    loop.set_exception_handler(lambda loop, context: told.append(context["exception"]))
    loop.run_until_complete(main())
    gc.collect()
    assert [type(error) for error in told] == [ZeroDivisionError]
    told.clear()
