"""What a loop tells of while somebody looks, and that it tells nothing else."""

from __future__ import annotations

import asyncio
import functools
import logging
import signal
import socket
import threading
from typing import Any

import pytest

import uringloop
from uringloop._core.loop.monitor import OPERATIONS, SAMPLES, TIMES, LoopMonitor, name_of

ALL = TIMES | OPERATIONS | SAMPLES


@pytest.fixture
def watched(loop: Any) -> Any:
    loop._set_monitor_flags(ALL)
    yield loop
    loop._set_monitor_flags(0)


def turn(loop: Any) -> None:
    loop.call_soon(loop.stop)
    loop.run_forever()


def named(loop: Any) -> list[str]:
    return [name for _, _, name, _ in loop.monitor.slowest_callbacks()]


def last_part(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def test_a_loop_gets_a_monitor_with_the_first_observer_and_keeps_it(loop: Any) -> None:
    assert loop.monitor is None
    turn(loop)
    loop._set_monitor_flags(TIMES)
    first = loop.monitor
    assert isinstance(first, LoopMonitor)
    loop._set_monitor_flags(0)
    loop._set_monitor_flags(TIMES)
    assert loop.monitor is first


def test_the_slowest_callbacks_are_named(watched: Any) -> None:
    def dawdle() -> None: ...

    async def coroutine() -> None: ...

    watched.call_soon(dawdle)
    turn(watched)
    assert "dawdle" in [last_part(name) for name in named(watched)]
    task = watched.create_task(coroutine(), name="the task")
    watched.run_until_complete(task)
    found = [(last_part(name), detail) for _, _, name, detail in watched.monitor.slowest_callbacks()]
    assert ("coroutine", "the task") in found


def test_a_task_that_a_lock_wakes_is_named(watched: Any) -> None:
    lock = uringloop.Lock()

    async def contend() -> None:
        async with lock:
            await asyncio.sleep(0)

    async def main() -> None:
        async with lock:
            task = watched.create_task(contend(), name="contender")
            await asyncio.sleep(0)
            watched.monitor.start_trace(100)
        await task

    watched.run_until_complete(main())
    found, _ = watched.monitor.take_trace()
    steps = [kind for kind, *_, name, detail in found if detail == "contender"]
    assert steps == ["callback", "callback"]  # the lock's, and the sleep's


def test_only_the_slowest_are_kept_the_slowest_first(watched: Any) -> None:
    for _ in range(50):
        watched.call_soon(sum, [])
    watched.call_soon(sorted, list(range(200_000, 0, -1)))
    turn(watched)
    found = watched.monitor.slowest_callbacks()
    assert len(found) == 10
    assert [took for took, *_ in found] == sorted((took for took, *_ in found), reverse=True)
    assert "sorted" in named(watched)


def test_a_kept_callback_is_named_although_its_handle_has_dropped_it(watched: Any) -> None:
    def dawdle() -> None: ...

    handle = watched.call_soon(dawdle)
    turn(watched)
    assert "dawdle" in [last_part(name) for name in named(watched)]
    assert handle is not None


def test_another_thread_sees_the_running_callback(watched: Any) -> None:
    seen: list[Any] = []

    def looked_at() -> None:
        thread = threading.Thread(target=lambda: seen.append(watched.monitor.running()))
        thread.start()
        thread.join()

    assert watched.monitor.running() is None
    watched.call_soon(looked_at)
    turn(watched)
    begun, since, called, _ = seen.pop()
    assert (begun, called) == (1, looked_at)
    assert since > 0
    assert watched.monitor.running() is None


def test_sleep_is_counted_also_while_it_lasts(watched: Any) -> None:
    seen: list[tuple[int, bool]] = []

    def look() -> None:
        while not watched.monitor.slept()[1]:
            pass
        seen.append(watched.monitor.slept())
        watched.call_soon_threadsafe(watched.stop)

    thread = threading.Thread(target=look)
    watched.call_soon(thread.start)
    watched.run_forever()
    thread.join()
    (slept, asleep) = seen.pop()
    assert slept > 0 and asleep
    after, asleep = watched.monitor.slept()
    assert after >= slept and not asleep


def test_an_observer_that_starts_during_a_sleep_sees_the_sleep(loop: Any) -> None:
    """Else an idle loop would look busy until it is next woken."""

    def look() -> None:
        loop._set_monitor_flags(TIMES)
        while not loop.monitor.slept()[1]:
            pass
        loop.call_soon_threadsafe(loop.stop)

    thread = threading.Thread(target=look)
    loop.call_soon(thread.start)
    loop.run_forever()
    thread.join()
    assert loop.monitor.slept()[0] > 0
    loop._set_monitor_flags(0)


def test_operations_are_known_those_there_before_too(loop: Any) -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            theirs.setblocking(False)
            before = loop.create_task(loop.sock_recv(ours, 1))
            await asyncio.sleep(0)
            loop._set_monitor_flags(OPERATIONS)
            await asyncio.sleep(0)
            behind = loop.create_task(loop.sock_recv(theirs, 1))
            await asyncio.sleep(0)
            found = {fd: (since, kind) for since, kind, fd in loop.monitor.operations()}
            assert found[ours.fileno()][0] == 0 and found[theirs.fileno()][0] > 0
            kinds = {each.kind for each in loop.operations()} - {"reader"}  # the loop's own, of signals
            assert {kind for _, kind in found.values()} == kinds
            for end in ours, theirs:
                await loop.sock_sendall(end, b"x")
            assert await before + await behind == b"xx"
            found_fds = {fd for _, _, fd in loop.monitor.operations()}
            assert not found_fds & {ours.fileno(), theirs.fileno()}

    loop.run_until_complete(main())


def test_a_new_observer_does_not_see_operations_that_ended_before(loop: Any) -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            reading = loop.create_task(loop.sock_recv(ours, 1))
            await asyncio.sleep(0)
            loop._set_monitor_flags(OPERATIONS)
            await asyncio.sleep(0)
            fd = ours.fileno()
            assert fd in {each[2] for each in loop.monitor.operations()}
            loop._set_monitor_flags(0)
            theirs.send(b"x")
            await reading
            loop._set_monitor_flags(OPERATIONS)
            await asyncio.sleep(0)
            assert fd not in {each[2] for each in loop.monitor.operations()}

    loop.run_until_complete(main())


def test_samples_are_even_and_bounded(watched: Any) -> None:
    turn(watched)
    assert len(watched.monitor.take_samples()) == 1
    assert watched.monitor.take_samples() == []
    for _ in range(10_000):
        watched.call_soon(id, 1)
    turn(watched)
    found = watched.monitor.take_samples()
    assert 2048 <= len(found) <= 4096
    assert all(took >= 0 for took in found)
    watched._set_monitor_flags(TIMES)
    turn(watched)
    assert watched.monitor.take_samples() == []


def test_a_trace_has_turns_sleeps_callbacks_and_operations(watched: Any) -> None:
    async def main() -> None:
        watched.monitor.start_trace(10_000)
        await asyncio.sleep(0.001)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            reading = watched.create_task(watched.sock_recv(ours, 1))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            theirs.send(b"x")
            await reading

    watched.run_until_complete(main())
    found, lost = watched.monitor.take_trace()
    assert lost == 0
    assert {kind for kind, *_ in found} == {"turn", "sleep", "callback", "operation"}
    turns = [number for kind, _, _, number, *_ in found if kind == "turn"]
    assert turns == sorted(turns)
    assert any(kind == "callback" and "main" in name for kind, _, _, _, _, name, _ in found)
    assert all(took >= 0 and start > 0 for _, start, took, *_ in found)
    assert watched.monitor.take_trace() == ([], 0)


def test_a_trace_keeps_the_last_and_counts_the_others(watched: Any) -> None:
    watched.monitor.start_trace(8)
    for _ in range(20):
        watched.call_soon(id, 1)
    turn(watched)
    found, lost = watched.monitor.take_trace()
    assert len(found) == 8
    assert lost >= 21 - 8


def test_one_trace_at_a_time(watched: Any) -> None:
    watched.monitor.start_trace(8)
    with pytest.raises(RuntimeError, match="traced already"):
        watched.monitor.start_trace(8)
    watched.monitor.take_trace()


def test_slow_hooks_are_called_right_after_the_callback_and_may_fail(
    watched: Any, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[tuple[str, int]] = []

    def hook(name: str, detail: str | None, began: int, took: int) -> None:
        told.append((last_part(name), took))
        raise ValueError("of the hook's own")

    def never(name: str, detail: str | None, began: int, took: int) -> None:
        raise AssertionError("it took no hour")

    def dawdle() -> None: ...

    watched.monitor.add_slow_hook(0, hook)
    watched.monitor.add_slow_hook(3600 * 10**9, never)
    watched.call_soon(dawdle)
    with caplog.at_level(logging.ERROR):
        turn(watched)
    assert "dawdle" in [name for name, _ in told]
    assert {record.exc_text is not None or record.exc_info is not None for record in caplog.records} == {True}
    assert "it took no hour" not in caplog.text
    watched.monitor.remove_slow_hook(hook)
    watched.monitor.remove_slow_hook(never)
    told.clear()
    turn(watched)
    assert not told


def test_an_interrupt_in_a_slow_hook_leaves_the_loop(watched: Any) -> None:
    def hook(name: str, detail: str | None, began: int, took: int) -> None:
        watched.monitor.remove_slow_hook(hook)
        signal.raise_signal(signal.SIGINT)

    watched.monitor.add_slow_hook(0, hook)
    watched.call_soon(watched.call_soon, watched.call_later, 0, watched.stop)
    with pytest.raises(KeyboardInterrupt):
        watched.run_forever()
        turn(watched)


def test_exceptions_that_leave_the_loop_still_do(watched: Any) -> None:
    def leave() -> None:
        raise SystemExit(3)

    watched.call_soon(leave)
    with pytest.raises(SystemExit):
        watched.run_forever()
    assert watched.monitor.running() is None
    turn(watched)


def test_debug_mode_and_looking_go_together(watched: Any, caplog: pytest.LogCaptureFixture) -> None:
    def dawdle() -> None: ...

    watched.set_debug(True)
    watched.slow_callback_duration = 0.0
    watched.call_soon(dawdle)
    with caplog.at_level(logging.WARNING):
        turn(watched)
    assert any("Executing <Handle" in message and "dawdle" in message for message in caplog.messages)
    assert "dawdle" in [last_part(name) for name in named(watched)]


def test_looking_at_a_closed_loop_is_no_error(loop: Any) -> None:
    loop.close()
    loop._set_monitor_flags(ALL)
    assert loop.monitor.operations() == []
    loop._set_monitor_flags(0)


def test_names() -> None:
    class Callable_:
        def __call__(self) -> None: ...

        def method(self) -> None: ...

    class Hostile:
        def __getattr__(self, name: str) -> Any:
            raise ValueError(name)

    assert name_of(print, int) == ("print", None)
    assert last_part(name_of(Callable_().method, int)[0]) == "method"
    assert last_part(name_of(Callable_(), int)[0]) == "Callable_"
    assert name_of(functools.partial(functools.partial(print, 1), 2), int) == ("print", None)
    assert name_of(Hostile(), int) == ("Hostile", None)
    assert name_of(None, int) == ("int", None)
