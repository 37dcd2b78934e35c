from __future__ import annotations

import asyncio
import json
import socket
import threading
from typing import Any

from uringloop._core.loop.monitor import OPERATIONS, TIMES
from uringloop.inspect import snapshot, snapshots
from uringloop.inspect.observers import Observer


def of(loop: Any, **options: int) -> dict[str, Any]:
    (found,) = (each for each in snapshot(**options)["loops"] if each["number"] == loop._number)
    json.dumps(found)
    return dict(found)


def test_a_loop_without_an_observer_shows_its_counters(loop: Any) -> None:
    loop.run_until_complete(asyncio.sleep(0))
    found = of(loop)
    assert (found["state"], found["thread"], found["running"]) == ("stopped", None, None)
    assert found["statistics"]["turns"] == loop.statistics().turns
    assert found["operations"] is None and found["slept_seconds"] is None
    assert found["engine"] in repr(loop)


def test_a_closed_loop_is_not_shown(loop: Any) -> None:
    loop.close()
    assert loop._number not in [each["number"] for each in snapshot()["loops"]]


def test_tasks_say_where_they_are_suspended(loop: Any) -> None:
    async def inner() -> None:
        await asyncio.Event().wait()

    async def outer() -> None:
        await inner()

    async def generator() -> Any:
        await inner()
        yield 1

    async def draws() -> None:
        async for _ in generator():
            pass

    async def main() -> list[dict[str, Any]]:
        tasks = [loop.create_task(outer(), name="a"), loop.create_task(draws(), name="b")]
        await asyncio.sleep(0)
        new = loop.create_task(outer(), name="c")
        found = of(loop)["tasks"]
        assert of(loop, tasks=2)["tasks"]["count"] == 4
        assert len(of(loop, tasks=2)["tasks"]["shown"]) == 2
        for task in (*tasks, new):
            task.cancel()
        await asyncio.gather(*tasks, new, return_exceptions=True)
        assert found["count"] == 4
        return list(found["shown"])

    shown = {task["name"]: task for task in loop.run_until_complete(main())}

    def places(name: str) -> list[str]:
        return [place.rsplit(" ", 1)[1] for place in shown[name]["stack"]]

    assert places("a") == ["outer", "inner", "wait"]
    assert "outer" in shown["a"]["coroutine"]
    assert __file__ in shown["a"]["stack"][0]
    assert places("c") == ["outer"]  # not begun
    assert places("b")[0] == "draws"  # an asynchronous generator does not show what it awaits


def test_operations_are_counted_by_kind(loop: Any) -> None:
    async def main() -> dict[str, int]:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            task = loop.create_task(loop.sock_recv(ours, 1))
            await asyncio.sleep(0)
            found: dict[str, int] = of(loop)["operations"]
            theirs.send(b"x")
            await task
        return found

    with Observer(OPERATIONS, loop):
        found = loop.run_until_complete(main())
    assert sum(found.values()) >= 2
    assert found["WakeOp"] == 1


def test_a_long_running_callback_is_shown_with_its_stack(loop: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(snapshots, "STUCK", 0.0)
    seen: list[dict[str, Any]] = []

    def look_from_outside() -> None:
        thread = threading.Thread(target=lambda: seen.append(of(loop)))
        thread.start()
        thread.join()
        loop.stop()

    with Observer(TIMES, loop):
        loop.call_soon(look_from_outside)
        loop.run_forever()
    (found,) = seen
    assert found["state"] == "running" and found["thread"] == threading.current_thread().name
    assert "look_from_outside" in found["running"]["name"]
    stack = found["running"]["stack"]
    # The loop's own frames, and what called it, are left out.
    assert "in look_from_outside" in stack[0]


def test_a_loop_answers_in_time_or_not_at_all(running: Any) -> None:
    """As Pythons without the GIL must."""
    assert snapshots._in_loop(running.loop, lambda: threading.current_thread().name) == "a loop's own"
    running.stop()
    running.loop.close()
    assert snapshots._in_loop(running.loop, lambda: 1) is None


def test_a_stuck_loop_does_not_answer_itself(running: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(snapshots, "PATIENCE", 0.01)
    free, stuck = threading.Event(), threading.Event()

    def block() -> None:
        stuck.set()
        free.wait()

    running.loop.call_soon_threadsafe(block)
    stuck.wait()
    assert snapshots._in_loop(running.loop, lambda: 1) is None
    free.set()
    assert running.call(lambda: 2) == 2
