from __future__ import annotations

from typing import Any

from uringloop.inspect.verdicts import verdicts

AT = {"file": "/srv/app.py", "line": 42, "function": "handler"}


def task(number: int, *, on: int | None = None, tasks: tuple[int, ...] = (), **more: Any) -> dict[str, Any]:
    wait = {
        "kind": more.pop("kind", "Lock"),
        "primitive": on,
        "tasks": list(tasks),
        "any": False,
        "thread": None,
    }
    described = {
        "id": number,
        "name": f"t{number}",
        "loop": 1,
        "main": False,
        "state": "waiting",
        "timed": False,
        "stack": [AT],
        "at": {**AT, "line": 40 + number},
        "waits_for": wait | more.pop("wait", {}),
        "holds": [],
    }
    return described | more


def lock(number: int, name: str | None, holders: list[int], waiters: list[int]) -> dict[str, Any]:
    exclusive = {"kind": "Lock", "exclusive": True}
    return {"id": number, "name": name, "holders": holders, "waiters": waiters, **exclusive}


def dump(tasks: list[dict[str, Any]], primitives: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    found = {
        "how": "inspector",
        "loops": [],
        "threads": [],
        "tasks": tasks,
        "primitives": primitives,
        "still": False,
    }
    return found | more


def test_a_blocked_loop_is_told_with_the_call_and_the_time() -> None:
    loop = {
        "number": 1,
        "state": "blocked",
        "blocked_seconds": 3.14,
        "at": AT,
        "calls": "time.sleep",
        "task": None,
    }
    (found,) = verdicts(dump([], [], loops=[loop]))
    assert (found["kind"], found["certain"], found["file"], found["line"]) == (
        "blocked",
        True,
        "/srv/app.py",
        42,
    )
    assert found["text"] == "loop 1 is blocked by time.sleep in handler(), /srv/app.py:42, for at least 3.1 s"


def test_a_circle_of_locks_is_a_deadlock() -> None:
    tasks = [task(1, on=12, holds=[11]), task(2, on=11, holds=[12])]
    (found,) = verdicts(dump(tasks, [lock(11, "a", [1], [2]), lock(12, "b", [2], [1])]))
    assert (found["kind"], found["certain"]) == ("deadlock", True)
    assert "task 't1' holds Lock 'a' and waits for Lock 'b' in handler(), /srv/app.py:41" in found["text"]
    assert [place["line"] for place in found["places"]] == [41, 42]


def test_a_lock_that_its_own_holder_acquires_again_is_a_deadlock() -> None:
    (found,) = verdicts(dump([task(1, on=11, holds=[11])], [lock(11, "a", [1], [1])]))
    assert (found["kind"], found["certain"]) == ("deadlock", True)


def test_a_circle_that_a_timeout_ends_is_not_certain() -> None:
    tasks = [task(1, tasks=(2,), kind="Task"), task(2, tasks=(1,), kind="Task")]
    tasks.append(task(3, tasks=(1,), kind="Task", timed=True))
    (found,) = verdicts(dump(tasks, []))
    assert not found["certain"] and "a timeout is going to end it" in found["text"]


def test_a_lock_without_a_known_holder_is_no_deadlock() -> None:
    (found,) = verdicts(dump([task(1, on=11), task(2, on=11)], [lock(11, None, [], [1, 2])]))
    assert not found["certain"]
    assert found["text"] == "2 tasks wait for Lock 11, holder unknown"


def test_a_line_is_told_up_to_what_its_holder_waits_for() -> None:
    tasks = [task(1, on=11), task(2, kind="timer", holds=[11])]
    (found,) = verdicts(dump(tasks, [lock(11, "pool", [2], [1])]))
    assert not found["certain"] and found["line"] == 42
    assert (
        "task 't1' waits for Lock 'pool', held by task 't2', which waits for a timer in handler()"
        in found["text"]
    )


def test_in_a_process_that_nothing_can_wake_what_tasks_wait_for_is_stuck() -> None:
    event = {"id": 11, "kind": "Event", "name": None, "holders": [], "waiters": [1], "exclusive": False}
    waiting = [task(1, on=11, kind="Event"), task(2, tasks=(1,), kind="Task")]
    assert verdicts(dump(waiting, [event])) == []
    (found,) = verdicts(dump(waiting, [event], still=True))
    assert (found["kind"], found["certain"], found["line"]) == ("Event", True, 41)


def test_a_future_to_which_nothing_else_refers_is_lost_unless_the_main_task_waits() -> None:
    lost = {"nothing_else_refers": True}
    tasks = [
        task(1, kind="Future", wait=lost),
        task(2, kind="Future", wait=lost, main=True),
        task(3, kind="Future"),
    ]
    (found,) = verdicts(dump(tasks, []))
    assert (found["kind"], found["certain"], found["line"]) == ("future", True, 41)


def test_the_threads_that_may_hold_the_gil_are_all_told() -> None:
    suspects = [{"state": "suspect", "at": {**AT, "line": line}} for line in (1, 2)]
    (found,) = verdicts(dump([], [], how="signal", threads=[*suspects, {"state": "waiting", "at": AT}]))
    assert (found["kind"], found["line"]) == ("gil", 1)
    assert "app.py:1" in found["text"] and "app.py:2" in found["text"] and "app.py:42" not in found["text"]


def test_without_anything_that_waits_there_is_no_verdict() -> None:
    running = task(1, state="running") | {"waits_for": None}
    assert verdicts(dump([running], [], still=True)) == []
