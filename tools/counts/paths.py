"""The hot paths whose instructions are counted, and what all of them are made of; those of sockets and files are in
io_paths.py.

A path is a generator: it makes what it needs on a loop of its own, yields what does `count` operations, and takes all
of it down. Everything happens in one thread, so that a run makes the same steps as the one before: what crosses
threads in a program is handed in while the loop it goes to does not run, and that loop runs afterwards. Beginning to
run costs more than many an operation, so BATCH of them share it. No loop spins, because no other thread ever wakes
one, and nothing may wait for a time: a timer is due at once or never.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

Loop = Any  # of the package that is counted
Run = Callable[[int], object]
Steps = Generator[Run, None, None]
Path = Callable[[Loop], Steps]

BATCH = 64
NEVER = 3600.0  # seconds until a timer that nobody waits for

# By name: how often it is done, once and twice as often, and how.
PATHS: dict[str, tuple[int, Path]] = {}


def path(name: str, count: int) -> Callable[[Path], Path]:
    def register(function: Path) -> Path:
        PATHS[name] = (count, function)
        return function

    return register


def run_turns(loop: Loop, turns: int = 1) -> None:
    """Let it make so many turns, and no more."""

    def another(left: int) -> None:
        if left:
            loop.call_soon(another, left - 1)
        else:
            loop.stop()

    another(turns - 1)
    loop.run_forever()


def chain(loop: Loop, schedule: Callable[[Callable[[], None]], object]) -> Run:
    """A callback that has itself called again, until it was called so often."""
    left = 0

    def link() -> None:
        nonlocal left
        left -= 1
        if left:
            schedule(link)
        else:
            loop.stop()

    def run(count: int) -> None:
        nonlocal left
        left = count
        schedule(link)
        loop.run_forever()

    return run


@path("call_soon", 512)
def call_soon(loop: Loop) -> Steps:
    """A call and the turn that runs it."""
    yield chain(loop, loop.call_soon)


@path("call_soon, many a turn", 512)
def call_soon_burst(loop: Loop) -> Steps:
    """With an argument, and next to nothing of a turn."""

    def run(count: int) -> None:
        for _ in range(count):
            loop.call_soon(len, "")
        run_turns(loop)

    yield run


@path("sleep(0)", 512)
def sleep_zero(loop: Loop) -> Steps:
    async def sleep(count: int) -> None:
        for _ in range(count):
            await asyncio.sleep(0)

    yield lambda count: loop.run_until_complete(sleep(count))


@path("create_task", 256)
def create_task(loop: Loop) -> Steps:
    async def nothing() -> None:
        pass

    async def make(count: int) -> None:
        for _ in range(count):
            await loop.create_task(nothing())

    yield lambda count: loop.run_until_complete(make(count))


@path("timer", 512)
def timer(loop: Loop) -> Steps:
    """One that is due in the next turn."""
    yield chain(loop, partial(loop.call_later, 0))


@path("timer, cancelled", 512)
def timer_cancelled(loop: Loop) -> Steps:
    """A timeout that nothing came of, among others."""
    others = [loop.call_later(NEVER + i, print) for i in range(100)]

    def run(count: int) -> None:
        for _ in range(count):
            loop.call_later(NEVER, print).cancel()
        run_turns(loop)

    yield run
    for other in others:
        other.cancel()


@path("threadsafe call", 512)
def threadsafe_call(loop: Loop) -> Steps:
    def run(count: int) -> None:
        for _ in range(count // BATCH):
            for _ in range(BATCH):
                loop.call_soon_threadsafe(len, "")
            run_turns(loop)

    yield run


@path("Lock hand-off", 256)
def lock_hand_off(loop: Loop) -> Steps:
    """From one task to another of the same loop: there is always one that waits."""
    from uringloop import Lock

    async def take(lock: Lock, times: int) -> None:
        for _ in range(times):
            async with lock:
                await asyncio.sleep(0)

    async def all_take(count: int) -> None:
        lock = Lock()
        await asyncio.gather(*(take(lock, count // 4) for _ in range(4)))

    yield lambda count: loop.run_until_complete(all_take(count))


@path("Lock hand-off to another loop", 512)
def lock_hand_off_elsewhere(loop: Loop) -> Steps:
    """Two loops run in turns, and each hands BATCH locks to tasks of the other."""
    from uringloop import Lock, new_event_loop

    other = new_event_loop()
    locks = [Lock() for _ in range(BATCH)]

    async def take(lock: Lock, times: int) -> None:
        for _ in range(times):
            async with lock:
                await asyncio.sleep(0)

    def run(count: int) -> None:
        times = count // BATCH // 2
        tasks = [one.create_task(take(lock, times)) for one in (loop, other) for lock in locks]
        while not all(task.done() for task in tasks):
            run_turns(loop, 2)
            run_turns(other, 2)

    yield run
    other.close()


@path("job", 256)
def job(loop: Loop) -> Steps:
    """Tasks submit coroutines to two contexts and await them. The contexts' threads are not there: their loops run
    here, in turns."""
    from uringloop.scheduler import scheduler as module

    class Stepped(module.Context):
        def start(self) -> None:
            pass

    async def work() -> int:
        return 1

    async def submit(times: int) -> None:
        for _ in range(times):
            await scheduler.submit(work)

    def run(count: int) -> None:
        tasks = [loop.create_task(submit(count // BATCH)) for _ in range(BATCH)]
        while not all(task.done() for task in tasks):
            run_turns(loop, 2)
            for context in scheduler.contexts:
                run_turns(context.loop, 8)  # an intake begins with a few, and with more in each turn

    threaded, module.Context = module.Context, Stepped
    try:
        scheduler = module.Scheduler(2)
        scheduler.start()
    finally:
        module.Context = threaded
    yield run
    for context in scheduler.contexts:
        context.intake.close(None)
        context.loop.close()
