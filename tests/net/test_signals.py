"""Signals: handlers of the loop's own, and Python's while the loop sleeps."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.contract


@pytest.fixture(autouse=True)
def signals_are_restored() -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGCHLD, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    assert signal.set_wakeup_fd(-1) == -1, "a loop left its wake-up descriptor behind"
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number: int = signal.SIGUSR1) -> None:
    os.kill(os.getpid(), number)


def test_a_handler_runs_in_the_loop(loop: Any) -> None:
    seen: list[object] = []

    def handler(*args: object) -> None:
        seen.append(args)
        assert asyncio._get_running_loop() is loop
        loop.stop()

    loop.add_signal_handler(signal.SIGUSR1, handler, 1, 2)
    loop.call_soon(send)
    loop.run_forever()
    assert seen == [(1, 2)]
    assert loop.remove_signal_handler(signal.SIGUSR1) is True
    assert loop.remove_signal_handler(signal.SIGUSR1) is False
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


def test_a_signal_wakes_a_sleeping_loop(loop: Any) -> None:
    loop.add_signal_handler(signal.SIGALRM, loop.stop)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    loop.run_forever()
    loop.remove_signal_handler(signal.SIGALRM)


def test_each_of_many_signals_in_different_turns_calls_its_handler(loop: Any) -> None:
    seen = 0

    def handler() -> None:
        nonlocal seen
        seen += 1
        if seen == 50:
            loop.stop()
        else:
            loop.call_soon(send)

    loop.add_signal_handler(signal.SIGUSR1, handler)
    loop.call_soon(send)
    loop.run_forever()
    assert seen == 50
    loop.remove_signal_handler(signal.SIGUSR1)


def test_different_signals_call_different_handlers(loop: Any) -> None:
    seen: list[str] = []

    def handler(name: str) -> None:
        seen.append(name)
        if len(seen) == 2:
            loop.stop()

    loop.add_signal_handler(signal.SIGUSR1, handler, "one")
    loop.add_signal_handler(signal.SIGUSR2, handler, "two")
    loop.call_soon(send, signal.SIGUSR2)
    loop.call_soon(send, signal.SIGUSR1)
    loop.run_forever()
    assert sorted(seen) == ["one", "two"]
    loop.remove_signal_handler(signal.SIGUSR1)
    loop.call_soon(send, signal.SIGUSR2)
    loop.call_later(10, loop.stop).cancel()
    seen.clear()
    loop.add_signal_handler(signal.SIGUSR2, loop.stop)
    loop.run_forever()
    loop.remove_signal_handler(signal.SIGUSR2)


def test_a_handler_can_be_replaced(loop: Any) -> None:
    seen: list[str] = []
    loop.add_signal_handler(signal.SIGUSR1, seen.append, "old")
    loop.add_signal_handler(signal.SIGUSR1, lambda: (seen.append("new"), loop.stop()))
    loop.call_soon(send)
    loop.run_forever()
    assert seen == ["new"]
    loop.remove_signal_handler(signal.SIGUSR1)


def test_a_signal_between_two_runs_calls_its_handler_in_the_second(loop: Any) -> None:
    seen: list[int] = []
    loop.add_signal_handler(signal.SIGUSR1, lambda: (seen.append(1), loop.stop()))
    loop.call_soon(loop.stop)
    loop.run_forever()
    send()
    loop.run_forever()
    assert seen == [1]
    loop.remove_signal_handler(signal.SIGUSR1)


def test_a_signal_before_the_first_run_calls_its_handler(loop: Any) -> None:
    loop.add_signal_handler(signal.SIGUSR1, loop.stop)
    send()
    loop.run_forever()
    loop.remove_signal_handler(signal.SIGUSR1)


def test_a_signal_that_another_thread_receives_wakes_the_loop(loop: Any) -> None:
    loop.add_signal_handler(signal.SIGUSR1, loop.stop)
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()

    def to_the_other() -> None:
        assert thread.ident is not None
        signal.pthread_kill(thread.ident, signal.SIGUSR1)

    loop.call_soon(to_the_other)
    loop.run_forever()
    over.set()
    thread.join()
    loop.remove_signal_handler(signal.SIGUSR1)


def test_a_python_handler_runs_while_the_loop_sleeps(loop: Any) -> None:
    seen: list[int] = []

    def handler(number: int, frame: object) -> None:
        seen.append(number)
        loop.call_soon_threadsafe(loop.stop)

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    loop.run_forever()
    assert seen == [signal.SIGALRM]


def test_a_python_handler_runs_although_the_loop_never_sleeps(loop: Any) -> None:
    over: list[int] = []
    signal.signal(signal.SIGALRM, lambda number, frame: over.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.005)

    async def spin() -> None:
        while not over:
            await asyncio.sleep(0)

    loop.run_until_complete(spin())


def test_a_signal_at_any_moment_of_a_turn_is_never_missed(loop: Any) -> None:
    """The timer's signal arrives at every moment of a turn: looking, falling asleep, sleeping."""
    seen = 0

    def handler() -> None:
        nonlocal seen
        seen += 1
        if seen < 300:
            signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + seen % 40))
        else:
            loop.stop()

    loop.add_signal_handler(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 1e-6)
    loop.run_forever()
    assert seen == 300
    loop.remove_signal_handler(signal.SIGALRM)


def test_keyboard_interrupt_leaves_run_forever(loop: Any) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seen: list[int] = []
    loop.call_soon(send, signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        loop.run_forever()
    loop.call_soon(seen.append, 1)
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert seen == [1]


def test_keyboard_interrupt_wakes_a_sleeping_loop(loop: Any) -> None:
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    with pytest.raises(KeyboardInterrupt):
        loop.run_forever()


def test_runner_turns_an_interrupt_into_cancellation_of_the_main_task(new_loop: Callable[..., Any]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seen: list[str] = []

    async def main() -> None:
        asyncio.get_running_loop().call_later(0.005, send, signal.SIGINT)
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    with pytest.raises(KeyboardInterrupt), asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())
    assert seen == ["cancelled"]


def test_a_main_task_can_handle_the_interrupt_of_a_runner(new_loop: Callable[..., Any]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)

    async def main() -> str:
        send(signal.SIGINT)
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return "handled"
        return "not interrupted"

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(main()) == "handled"


def test_the_end_of_a_child_process_calls_the_sigchld_handler(loop: Any) -> None:
    loop.add_signal_handler(signal.SIGCHLD, loop.stop)
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", ""], os.environ)
    loop.run_forever()
    os.waitpid(pid, 0)
    loop.remove_signal_handler(signal.SIGCHLD)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_signals_that_cannot_be_caught_raise_a_runtime_error(loop: Any, number: int) -> None:
    with pytest.raises(RuntimeError, match=f"sig {int(number)} cannot be caught"):
        loop.add_signal_handler(number, print)


@pytest.mark.parametrize(
    ("wrong", "error"), [(0, ValueError), (1000, ValueError), (-1, ValueError), ("1", TypeError)]
)
def test_invalid_signal_numbers_are_refused(loop: Any, wrong: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        loop.add_signal_handler(wrong, print)
    with pytest.raises(error):
        loop.remove_signal_handler(wrong)


def test_coroutines_are_refused_as_handlers(loop: Any) -> None:
    async def handler() -> None: ...

    with pytest.raises(TypeError, match="coroutines cannot be used"):
        loop.add_signal_handler(signal.SIGUSR1, handler)
    coroutine = handler()
    with pytest.raises(TypeError, match="coroutines cannot be used"):
        loop.add_signal_handler(signal.SIGUSR1, coroutine)
    coroutine.close()


def test_add_signal_handler_raises_outside_the_main_thread(loop: Any) -> None:
    caught: list[str] = []

    def other() -> None:
        try:
            loop.add_signal_handler(signal.SIGUSR1, print)
        except RuntimeError as error:
            caught.append(str(error))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert len(caught) == 1


def test_a_loop_with_signal_handlers_can_be_closed_in_another_thread(new_loop: Callable[..., Any]) -> None:
    """Only the main thread can take the handlers back: that is an error, but the loop is closed all the same."""
    loop = new_loop()
    loop.add_signal_handler(signal.SIGUSR1, print)
    loop.add_signal_handler(signal.SIGUSR2, print)
    caught: list[BaseException] = []

    def other() -> None:
        try:
            loop.close()
        except ValueError as error:
            caught.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert len(caught) == 1
    assert loop.is_closed()
    loop.close()
    with socket.socket() as stranger:  # has not got a number that signals are written to
        send()
        assert stranger.fileno() != signal.set_wakeup_fd(-1)
    following = new_loop()
    told: list[int] = []
    following.add_signal_handler(signal.SIGUSR1, lambda: (told.append(1), following.stop()))
    following.call_soon(send)
    following.run_forever()
    assert told == [1]


def test_a_closed_loop_refuses_signal_handlers(loop: Any) -> None:
    loop.close()
    with pytest.raises(RuntimeError, match="Event loop is closed"):
        loop.add_signal_handler(signal.SIGUSR1, print)


def test_exceptions_of_a_handler_are_reported(loop: Any) -> None:
    reports: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda loop, context: (reports.append(context), loop.stop()))
    loop.add_signal_handler(signal.SIGUSR1, lambda: 1 / 0)
    loop.call_soon(send)
    loop.run_forever()
    assert isinstance(reports[0]["exception"], ZeroDivisionError)
    loop.remove_signal_handler(signal.SIGUSR1)


def test_closing_the_loop_removes_its_handlers(new_loop: Callable[..., Any]) -> None:
    loop = new_loop()
    loop.add_signal_handler(signal.SIGUSR1, print)
    loop.add_signal_handler(signal.SIGINT, print)
    loop.close()
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.engines("uring", "epoll", "fake")
def test_the_loop_keeps_a_wakeup_descriptor_set_by_the_program(loop: Any) -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    loop.add_signal_handler(signal.SIGUSR2, print)
    loop.remove_signal_handler(signal.SIGUSR2)
    with ours, theirs:
        signal.set_wakeup_fd(theirs.fileno())
        signal.signal(signal.SIGUSR1, lambda number, frame: loop.call_soon_threadsafe(loop.stop))
        loop.call_soon(send)
        loop.run_forever()
        assert ours.recv(10) == bytes([signal.SIGUSR1])
        loop.close()
        assert signal.set_wakeup_fd(-1) == theirs.fileno()


@pytest.mark.engines("uring", "epoll", "fake")
def test_signals_of_a_forked_child_do_not_reach_the_parents_loop(
    engine: str, program: Callable[..., Any]
) -> None:
    code = """
import os, signal, uringloop
loop = uringloop.new_event_loop()
seen = []
loop.add_signal_handler(signal.SIGUSR1, seen.append, "of the child")
loop.call_soon(loop.stop)
loop.run_forever()
pid = os.fork()
if pid == 0:
    os.kill(os.getpid(), signal.SIGUSR1)
    loop.add_signal_handler(signal.SIGUSR1, lambda: (seen.append("of its own"), loop.stop()))
    os.kill(os.getpid(), signal.SIGUSR1)
    loop.run_forever()
    loop.close()
    os._exit(0 if seen == ["of its own"] else 1)
assert os.waitpid(pid, 0)[1] == 0
for _ in range(30):
    loop.call_soon(loop.stop)
    loop.run_forever()
assert seen == [], seen
loop.add_signal_handler(signal.SIGUSR1, loop.stop)
os.kill(os.getpid(), signal.SIGUSR1)
loop.run_forever()
loop.close()
"""
    program(code)


def test_two_loops_in_succession_handle_their_signals(new_loop: Callable[..., Any]) -> None:
    for _ in range(2):
        loop = new_loop()
        loop.add_signal_handler(signal.SIGUSR1, loop.stop)
        loop.call_soon(send)
        loop.run_forever()
        loop.close()


def test_a_loop_that_runs_in_another_thread_still_handles_its_signals(loop: Any) -> None:
    loop.add_signal_handler(signal.SIGUSR1, loop.stop)
    thread = threading.Thread(target=loop.run_forever)
    loop.call_soon(send)
    thread.start()
    thread.join()
    loop.remove_signal_handler(signal.SIGUSR1)
