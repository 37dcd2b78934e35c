"""What find_stuck finds, and above all what it does not: everything here runs beside a server that waits."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

import uringloop
from tests.inspect.conftest import Running
from tests.inspect.healthy import HEALTHY, KEPT, NEVER, two_locks
from uringloop.inspect import Stuck, StuckFinder, find_stuck, observers, stuck

COUNTS = getattr(sys, "_is_gil_enabled", lambda: True)()
counts_references = pytest.mark.skipif(not COUNTS, reason="without the GIL, references can't be counted")
Work = Coroutine[Any, Any, Any]

kept: list[Any]  # as programs keep their tasks: what it leads to is live
pytestmark = pytest.mark.engines("uring", "epoll")


@pytest.fixture(autouse=True)
def keep_nothing() -> Any:
    global kept
    kept = []  # for each test: the collector does not show what a list refers to that was frozen with the modules
    yield
    kept.clear()
    KEPT.clear()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def beside_a_server(loop: Any, *works: Work) -> list[Stuck]:
    """What is found when these tasks wait, and when a server of the same loop waits for a connection."""

    async def main() -> list[Stuck]:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        serving = asyncio.create_task(server.serve_forever(), name="serving")
        tasks = []
        while coroutines:  # a variable that refers to one would be a live object
            name = coroutines[0].__qualname__.rpartition(".")[2]
            tasks.append(asyncio.create_task(coroutines.pop(0), name=name))
        kept.extend(tasks)
        await settle()
        found = find_stuck()
        for task in [serving, *tasks, *asyncio.all_tasks() - {asyncio.current_task()}]:
            task.cancel()
        await asyncio.wait([serving, *tasks])
        server.close()
        return found

    coroutines = list(works)
    del works
    return loop.run_until_complete(main())


# Each waits for a primitive that nothing else knows.


async def acquire(lock: Any) -> None:
    await lock.acquire()
    await lock.acquire()


async def condition(changed: Any) -> None:
    async with changed:
        await changed.wait()


async def put(queue: Any) -> None:
    await queue.put(1)
    await queue.put(2)


async def join(queue: Any) -> None:
    await queue.put(1)
    await queue.join()


async def plain(wait: Callable[[], Awaitable[Any]]) -> None:
    await wait()


async def future() -> None:
    answer = asyncio.get_running_loop().create_future()
    await answer


LOST: dict[str, tuple[Callable[[], Work], str]] = {
    "Lock": (lambda: acquire(uringloop.Lock()), "waits for Lock 'lock' in acquire()"),
    "asyncio.Lock": (lambda: acquire(asyncio.Lock()), "waits for Lock 'lock' in acquire()"),
    "Semaphore": (lambda: acquire(uringloop.Semaphore(1)), "Semaphore 'lock'"),
    "asyncio.Semaphore": (lambda: acquire(asyncio.Semaphore(1)), "Semaphore 'lock'"),
    "Condition": (lambda: condition(uringloop.Condition()), "no live object notifies it"),
    "asyncio.Condition": (lambda: condition(asyncio.Condition()), "no live object notifies it"),
    "Queue.put": (lambda: put(uringloop.Queue(1)), "room in Queue 'queue'"),
    "asyncio.Queue.put": (lambda: put(asyncio.Queue(1)), "room in Queue 'queue'"),
    "Queue.join": (lambda: join(uringloop.Queue()), "waits for "),
    "Queue.get": (lambda: plain(uringloop.Queue().get), "no live object puts an item into it"),
    "asyncio.Queue.get": (lambda: plain(asyncio.Queue().get), "no live object puts an item into it"),
    "Event": (lambda: plain(uringloop.Event().wait), "no live object sets it"),
    "asyncio.Event": (lambda: plain(asyncio.Event().wait), "no live object sets it"),
    "AutoResetEvent": (lambda: plain(uringloop.AutoResetEvent().wait), "no live object sets it"),
    "Barrier": (lambda: plain(uringloop.Barrier(2).wait), "Barrier"),
    "Future": (future, "waits for a future in future()"),
}


@counts_references
@pytest.mark.parametrize("name", LOST)
def test_a_task_that_waits_for_what_nothing_can_set_is_found(loop: Any, name: str) -> None:
    work, said = LOST[name]
    (found,) = beside_a_server(loop, work())
    assert found.kind in ("unreachable", "deadlock") and said in found.text
    assert f"test_stuck.py:{line_of(found)}" in found.text
    (task,) = found.tasks
    assert task.loop == loop._number and "await" in "".join(task.stack)


def line_of(found: Stuck) -> int:
    own = [line for line in found.tasks[0].stack if "test_stuck.py" in line]
    return int(own[-1].partition("line ")[2].partition(",")[0])


@counts_references
def test_tasks_that_wait_for_the_same_are_told_together_and_with_those_that_wait_for_them(loop: Any) -> None:
    async def worker(queue: uringloop.Queue[int]) -> None:
        await queue.get()

    async def boss() -> None:
        queue: uringloop.Queue[int] = uringloop.Queue()
        async with asyncio.TaskGroup() as group:
            for number in range(5):
                group.create_task(worker(queue), name=f"worker {number}")

    (found,) = beside_a_server(loop, boss())
    assert found.text.startswith("5 tasks wait for an item of Queue 'queue' in ")
    assert found.text.endswith("only a cancellation ends this wait; 1 more task waits for them")
    assert [task.name for task in found.tasks] == [f"worker {number}" for number in range(5)]
    assert str(found).count("is suspended at") == 3 and "and 2 more tasks" in str(found)


@pytest.mark.parametrize("kind", [uringloop.Lock, asyncio.Lock])
def test_a_deadlock_is_found_once_with_both_stacks(loop: Any, kind: type[Any]) -> None:
    first, second = kind(), kind()
    (found,) = beside_a_server(loop, *two_locks(first, second))
    assert found.kind == "deadlock" and "deadlock: task" in found.text
    assert sorted(task.name for task in found.tasks) == ["one", "other"]
    assert str(found).count("is suspended at") == 2
    assert "in two_locks.<locals>.one" in str(found) and "in two_locks.<locals>.other" in str(found)


def test_a_deadlock_of_two_loops_is_found_from_a_third_thread(
    run_in_thread: Callable[..., Running],
) -> None:
    locks, both = [uringloop.Lock(), uringloop.Lock()], uringloop.Barrier(2)

    async def take(mine: int) -> None:
        async with locks[mine]:
            await both.wait()
            async with locks[1 - mine]:
                pass

    running = [run_in_thread("first"), run_in_thread("second")]
    tasks = [
        each.call(lambda each=each, at=at: each.loop.create_task(take(at), name=f"task {at}"))
        for at, each in enumerate(running)
    ]
    while sum(lock.statistics()["waiting"] for lock in locks) != 2:
        time.sleep(0)
    (found,) = find_stuck()
    assert found.kind == "deadlock"
    assert sorted((task.name, task.loop) for task in found.tasks) == [
        (f"task {at}", each.loop._number) for at, each in enumerate(running)
    ]
    for each, task in zip(running, tasks, strict=True):
        each.call(task.cancel)
        while not task.done():
            time.sleep(0)


@pytest.mark.parametrize("work", HEALTHY, ids=lambda work: work.__name__)
def test_what_something_can_end_is_not_found(loop: Any, work: Callable[[], Work]) -> None:
    assert beside_a_server(loop, work()) == []


def test_all_at_once(loop: Any) -> None:
    assert beside_a_server(loop, *(work() for work in HEALTHY)) == []


def test_the_main_task_may_wait_for_nothing(loop: Any) -> None:
    found: list[Stuck] = []
    thread = threading.Timer(0, lambda: (found.extend(find_stuck()), loop.call_soon_threadsafe(loop.stop)))

    async def main() -> None:
        never = asyncio.Event()
        await never.wait()

    thread.start()
    with pytest.raises(RuntimeError):  # stopped before its end
        loop.run_until_complete(main())
    thread.join()
    assert found == []
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))


def test_a_finder_reports_each_finding_once(loop: Any) -> None:
    reports: list[Stuck] = []

    def report(found: Stuck) -> None:
        reports.append(found)
        raise ValueError("the report's own mistake")

    async def main() -> None:
        locks = uringloop.Lock(), uringloop.Lock()
        tasks = [asyncio.create_task(work) for work in two_locks(*locks)]
        await settle()
        with StuckFinder(NEVER, report) as finder:
            finder.look()
            finder.look()
            assert len(reports) == 1
            more = [asyncio.create_task(work) for work in two_locks(uringloop.Lock(), uringloop.Lock())]
            await settle()
            finder.look()
            assert len(reports) == 2
        for task in [*tasks, *more]:
            task.cancel()
        await asyncio.wait([*tasks, *more])
        finder.stop()

    loop.run_until_complete(main())


def test_a_finder_looks_regularly_and_logs(
    loop: Any, running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    locks = uringloop.Lock(), uringloop.Lock()
    logged = threading.Event()
    handler = logging.Handler()
    handler.emit = lambda record: logged.set()  # type: ignore[method-assign]
    stuck.logger.addHandler(handler)

    async def main() -> None:
        tasks = [asyncio.create_task(work) for work in two_locks(*locks)]
        with StuckFinder(0.001):
            while not logged.is_set():
                await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    try:
        loop.run_until_complete(main())
    finally:
        stuck.logger.removeHandler(handler)
    (record,) = caplog.records
    assert record.name == "uringloop" and record.levelname == "WARNING"
    assert "deadlock: task" in record.getMessage() and "is suspended at" in record.getMessage()


def test_seconds_must_be_more_than_nothing() -> None:
    with pytest.raises(ValueError, match="more than 0"):
        StuckFinder(0)


SCRIPT = """
import asyncio, os, threading, uringloop
from uringloop.inspect import stuck

def finders():
    return [thread.name for thread in threading.enumerate() if "finder" in thread.name]

async def main():
    first, second = uringloop.Lock(), uringloop.Lock()
    async def take(a, b):
        async with a:
            await asyncio.sleep(0)
            async with b:
                pass
    tasks = [asyncio.create_task(take(first, second)), asyncio.create_task(take(second, first))]
    await asyncio.sleep(0.01)
    stuck._finder.look()
    stuck._finder.look()
    for task in tasks:
        task.cancel()

uringloop.run(main())
uringloop.new_event_loop().close()
print(finders())
if os.fork() == 0:
    print(finders())
    uringloop.new_event_loop().close()
    print(finders(), flush=True)
    os._exit(0)
os.wait()
"""


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_environment_starts_one_finder_in_each_process(engine: str) -> None:
    run = python(SCRIPT, URINGLOOP_DEBUG="stuck", PYTHONUNBUFFERED="1")
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("deadlock: task") == 1
    assert run.stdout.splitlines() == ["['uringloop stuck finder']", "[]", "['uringloop stuck finder']"]


def test_without_the_environment_there_is_no_finder(loop: Any) -> None:
    assert not observers._ASKED
    assert not [thread for thread in threading.enumerate() if "stuck finder" in thread.name]


def test_an_unknown_name_is_an_error(engine: str) -> None:
    run = python("import uringloop", URINGLOOP_DEBUG="stuck,dreams")
    assert run.returncode == 1 and "URINGLOOP_DEBUG takes 'stuck', not 'stuck,dreams'" in run.stderr
