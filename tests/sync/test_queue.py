"""Queue: nothing lost, nothing twice, in order, across loops and threads."""

from __future__ import annotations

import asyncio
import gc
import random
import weakref
from typing import Any

import pytest

from uringloop.errors import QueueShutDown
from uringloop.sync.queue import LifoQueue, PriorityQueue, Queue

KINDS: list[Any] = [Queue, LifoQueue, PriorityQueue]


@pytest.mark.parametrize(
    ("kind", "order"), [(Queue, [2, 1, 3]), (LifoQueue, [3, 1, 2]), (PriorityQueue, [1, 2, 3])]
)
def test_gives_items_in_its_order_without_suspending(kind: Any, order: list[int], engine: str) -> None:
    queue = kind()

    async def main() -> list[int]:
        for item in (2, 1, 3):
            await queue.put(item)
        assert queue.qsize() == 3
        return [await queue.get() for _ in range(3)]

    with pytest.raises(StopIteration) as ended:
        main().send(None)
    assert ended.value.value == order
    assert queue.empty()


@pytest.mark.parametrize("kind", KINDS)
def test_bounded_queue_waits_for_room_and_items(kind: Any, loop: Any) -> None:
    queue = kind(2)

    async def main() -> None:
        queue.put_nowait(1)
        queue.put_nowait(2)
        assert queue.full()
        with pytest.raises(asyncio.QueueFull):
            queue.put_nowait(3)
        putter = asyncio.create_task(queue.put(3))
        await asyncio.sleep(0)
        assert not putter.done()
        got = [await queue.get()]
        await putter
        got += [await queue.get(), await queue.get()]
        assert sorted(got) == [1, 2, 3]
        with pytest.raises(asyncio.QueueEmpty):
            queue.get_nowait()
        getter = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        await queue.put(4)
        assert await getter == 4

    loop.run_until_complete(main())


def test_getter_cancelled_with_an_item_granted_leaves_it(loop: Any) -> None:
    queue: Queue[int] = Queue()

    async def main() -> None:
        first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        queue.put_nowait(1)
        first.cancel()
        assert await asyncio.wait_for(second, 5) == 1
        third = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        queue.put_nowait(2)
        third.cancel()
        await asyncio.wait([third])
        assert queue.get_nowait() == 2

    loop.run_until_complete(main())


def test_putter_cancelled_with_room_granted_puts_nothing(loop: Any) -> None:
    queue: Queue[int] = Queue(1)

    async def main() -> None:
        queue.put_nowait(1)
        first, second = asyncio.create_task(queue.put(2)), asyncio.create_task(queue.put(3))
        await asyncio.sleep(0)
        assert queue.get_nowait() == 1
        first.cancel()
        await second
        assert queue.get_nowait() == 3
        assert first.cancelled()
        assert queue.empty()

    loop.run_until_complete(main())


def test_join_waits_for_what_was_put(loop: Any) -> None:
    queue: Queue[int] = Queue()

    async def main() -> None:
        await queue.join()
        queue.put_nowait(1)
        queue.put_nowait(2)
        joining = asyncio.create_task(queue.join())
        await asyncio.sleep(0)
        for _ in range(2):
            assert not joining.done()
            queue.get_nowait()
            queue.task_done()
        await joining
        with pytest.raises(ValueError):
            queue.task_done()

    loop.run_until_complete(main())


@pytest.mark.parametrize("immediate", [False, True])
def test_shutdown(loop: Any, immediate: bool) -> None:
    queue: Queue[int] = Queue(2)
    other: Queue[int] = Queue()

    async def main() -> None:
        queue.put_nowait(1)
        queue.put_nowait(2)
        putter, getter = asyncio.create_task(queue.put(3)), asyncio.create_task(other.get())
        joining = asyncio.create_task(queue.join())
        await asyncio.sleep(0)
        queue.shutdown(immediate)
        other.shutdown(immediate)
        for waiting in (putter, getter):
            with pytest.raises(QueueShutDown):
                await waiting
        with pytest.raises(QueueShutDown):
            queue.put_nowait(4)
        with pytest.raises(QueueShutDown):
            await queue.put(4)
        if not immediate:
            assert [queue.get_nowait(), await queue.get()] == [1, 2]
            queue.task_done()
            queue.task_done()
        await joining
        with pytest.raises(QueueShutDown):
            await queue.get()
        with pytest.raises(QueueShutDown):
            queue.get_nowait()
        assert queue.statistics()["unfinished"] == 0

    loop.run_until_complete(main())


def test_item_that_cannot_be_compared_is_not_put(loop: Any) -> None:
    queue: PriorityQueue[Any] = PriorityQueue(3)

    async def main() -> None:
        await queue.put(1)
        with pytest.raises(TypeError):
            await queue.put("one")

    loop.run_until_complete(main())
    assert queue.statistics()["unfinished"] == queue.qsize() == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("maxsize", [0, 1, 7])
def test_queue_works_across_loops_and_threads(kind: Any, maxsize: int, threads: Any, factories: Any) -> None:
    queue, got, count = kind(maxsize), [], 60

    async def put(base: int) -> None:
        for number in range(count):
            await queue.put(base + number)

    def put_sync(base: int) -> None:
        for number in range(count):
            queue.put_sync(base + number, 20)

    async def get() -> None:
        for _ in range(count):
            got.append(await queue.get())

    def get_sync() -> None:
        for _ in range(count):
            got.append(queue.get_sync(20))

    threads.loop(put, 0, factory=factories[0])
    threads.loop(put, 1000, factory=factories[2])
    threads.plain(put_sync, 2000)
    threads.loop(get, factory=factories[1])
    threads.loop(get, factory=factories[3])
    threads.plain(get_sync)
    threads.join()
    assert sorted(got) == [base + number for base in (0, 1000, 2000) for number in range(count)]
    assert queue.empty()


def test_sync_times_out(engine: str) -> None:
    queue: Queue[int] = Queue(1)
    with pytest.raises(TimeoutError):
        queue.get_sync(0.001)
    queue.put_sync(1)
    with pytest.raises(TimeoutError):
        queue.put_sync(2, 0.001)
    assert not queue.join_sync(0.001)
    assert queue.get_sync() == 1
    queue.task_done()
    assert queue.join_sync()


def test_unlimited_queue_needs_no_collector(engine: str) -> None:
    gc.disable()
    try:
        queue: Queue[int] = Queue()
        gone = weakref.ref(queue)
        queue.put_nowait(1)
        del queue
        assert gone() is None
    finally:
        gc.enable()


def test_type_takes_a_subscript(engine: str) -> None:
    assert Queue[int] is not None
    assert repr(Queue(3)) == "<Queue size=0 maxsize=3 getters=0 putters=0>"


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


def test_put_is_counted_before_another_task_can_get_the_item(engine: str) -> None:
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
