"""PriorityQueue: items whose comparison raises, or looks at the queue, or is interrupted, lose no item and no order."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from uringloop.sync.queue import PriorityQueue


class Item:
    """Compares by its number; raises after so many comparisons, of all items together."""

    left = -1

    def __init__(self, number: int) -> None:
        self.number = number

    def __lt__(self, other: Item) -> bool:
        if Item.left == 0:
            raise ZeroDivisionError
        Item.left -= 1
        return self.number < other.number


def drained(queue: Any) -> list[int]:
    Item.left = -1
    return [queue.get_nowait().number for _ in range(queue.qsize())]


@pytest.mark.parametrize("maxsize", [0, 40])
def test_comparison_that_raises_changes_nothing(engine: str, maxsize: int) -> None:
    chance = random.Random(7)
    for fails_after in range(6):
        queue: PriorityQueue[Item] = PriorityQueue(maxsize)
        there = []
        for number in chance.sample(range(100), 30):
            Item.left = fails_after if chance.random() < 0.5 else -1
            try:
                queue.put_nowait(Item(number))
                there.append(number)
            except ZeroDivisionError:
                pass
            if there and chance.random() < 0.4:
                Item.left = fails_after if chance.random() < 0.7 else -1
                try:
                    there.remove(queue.get_nowait().number)
                except ZeroDivisionError:
                    pass
            assert queue.qsize() == len(there)
        assert drained(queue) == sorted(there)
        assert not maxsize or queue.statistics()["put"]["waiting"] == 0  # type: ignore[index]
        for number in range(maxsize):
            queue.put_nowait(Item(number))  # all its room is there


def test_getter_whose_comparison_raises_leaves_the_item_to_the_next(loop: Any) -> None:
    queue: PriorityQueue[Item] = PriorityQueue(4)

    async def main() -> None:
        for number in (3, 1, 2, 4):
            queue.put_nowait(Item(number))
        Item.left = 0
        with pytest.raises(ZeroDivisionError):
            await queue.get()
        Item.left = -1
        assert (await queue.get()).number == 1
        getters = [asyncio.create_task(queue.get()) for _ in range(4)]
        getters[1].cancel()
        await asyncio.sleep(0)
        queue.put_nowait(Item(0))
        await asyncio.wait(getters)
        found = sorted(getter.result().number for getter in getters if not getter.cancelled())
        assert found == [2, 3, 4]
        assert queue.get_nowait().number == 0

    loop.run_until_complete(main())
    assert queue.statistics()["unfinished"] == 5


def test_put_is_counted_before_anybody_can_get_it(engine: str) -> None:
    queue: PriorityQueue[Any] = PriorityQueue()
    seen = []

    class Looks:
        def __lt__(self, other: object) -> bool:
            seen.append(queue.statistics()["unfinished"])
            return False

    queue.put_nowait(Looks())
    queue.put_nowait(Looks())
    assert seen == [2]


def test_comparison_that_uses_the_queue_is_refused(engine: str) -> None:
    queue: PriorityQueue[Any] = PriorityQueue()

    class Greedy:
        def __lt__(self, other: object) -> bool:
            queue.get_nowait()
            return False

    queue.put_nowait(Greedy())
    with pytest.raises(RuntimeError, match="must not use the queue"):
        queue.put_nowait(Greedy())
    assert queue.qsize() == 1
    assert isinstance(queue.get_nowait(), Greedy)


def test_shutdown_discards_what_cannot_be_compared(engine: str) -> None:
    queue: PriorityQueue[Item] = PriorityQueue(5)
    for number in range(5):
        queue.put_nowait(Item(number))
    Item.left = 0
    queue.shutdown(immediate=True)
    assert queue.qsize() == queue.statistics()["unfinished"] == 0
    Item.left = -1
