"""The turn and the call_soon family."""

from __future__ import annotations

import asyncio
import contextvars
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

Loop = asyncio.AbstractEventLoop

contract = pytest.mark.contract
variable = contextvars.ContextVar("variable", default="default")


def run_turn(loop: Loop) -> None:
    loop.call_soon(loop.stop)
    loop.run_forever()


@contract
def test_call_soon_runs_in_order_with_any_number_of_arguments(loop: Loop) -> None:
    seen: list[tuple[int, ...]] = []
    for count in range(6):
        loop.call_soon(lambda *args: seen.append(args), *range(count))
    run_turn(loop)
    assert seen == [tuple(range(count)) for count in range(6)]


@contract
def test_call_soon_runs_bound_methods_and_other_callables(loop: Loop) -> None:
    seen: list[Any] = []

    class Callable_:
        def __call__(self, *args: int) -> None:
            seen.append(args)

        def method(self, *args: int) -> None:
            seen.append(args)

    for callback in (Callable_(), Callable_().method, lambda *args: seen.append(args)):
        for args in ((), (1,), (1, 2), (1, 2, 3)):
            loop.call_soon(callback, *args)
    run_turn(loop)
    assert seen == [(), (1,), (1, 2), (1, 2, 3)] * 3


@contract
@pytest.mark.parametrize("method", ["call_soon", "call_soon_threadsafe", "call_later", "call_at"])
def test_callbacks_run_in_a_copy_of_the_callers_context(loop: Loop, method: str) -> None:
    seen = []
    args = () if method.startswith("call_soon") else (0,)

    def callback() -> None:
        seen.append(variable.get())
        variable.set("changed")

    token = variable.set("caller's")
    getattr(loop, method)(*args, callback)
    variable.reset(token)
    getattr(loop, method)(*args, callback)
    run_turn(loop)
    run_turn(loop)
    assert seen == ["caller's", "default"]
    assert variable.get() == "default"


@contract
@pytest.mark.parametrize("method", ["call_soon", "call_soon_threadsafe", "call_later", "call_at"])
def test_callbacks_run_in_the_context_given(loop: Loop, method: str) -> None:
    context = contextvars.copy_context()
    args = () if method.startswith("call_soon") else (0,)
    getattr(loop, method)(*args, variable.set, "in the context", context=context)
    getattr(loop, method)(*args, variable.set, "in a copy", context=None)
    run_turn(loop)
    run_turn(loop)
    assert context[variable] == "in the context"
    assert variable.get() == "default"


@contract
def test_a_context_that_is_entered_already_is_reported(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    reports: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda loop, context: reports.append(context))
    context = contextvars.copy_context()
    loop.call_soon(print, context=context)
    context.run(run_turn, loop)
    # Since Python 3.12 the handler itself is run in that context, which fails in turn and is logged.
    told = str(reports[0]["exception"]) if reports else caplog.text
    assert "cannot enter context" in told


@contract
@pytest.mark.parametrize("method", ["call_soon", "call_soon_threadsafe", "call_later", "call_at"])
def test_wrong_arguments_are_type_errors(loop: Loop, method: str) -> None:
    call: Callable[..., Any] = getattr(loop, method)
    with pytest.raises(TypeError):
        call()
    if method in ("call_later", "call_at"):
        with pytest.raises(TypeError):
            call(1)
    with pytest.raises(TypeError):
        call(0, print, unknown=1)
    run_turn(loop)


@contract
def test_handles_are_asyncios_to_the_eye(loop: Loop) -> None:
    handle, timer = loop.call_soon(print), loop.call_later(0, print)
    assert not handle.cancelled() and not timer.cancelled()
    assert "Handle" in repr(handle) and "TimerHandle" in repr(timer) and "print" in repr(handle)
    assert isinstance(timer.when(), float)
    for each in (handle, timer):
        each.cancel()
        each.cancel()
        assert each.cancelled() and "cancelled" in repr(each)
    run_turn(loop)


@contract
def test_a_cancelled_callback_does_not_run(loop: Loop) -> None:
    seen: list[int] = []
    for method in (loop.call_soon, loop.call_soon_threadsafe):
        method(seen.append, 1).cancel()
    run_turn(loop)
    run_turn(loop)
    assert seen == []


@contract
def test_a_callback_that_cancels_itself_goes_on(loop: Loop) -> None:
    seen: list[Any] = []

    def callback(*args: object) -> None:
        handle.cancel()
        seen.append(args)

    arguments = [object(), object()]
    handle = loop.call_soon(callback, *arguments)
    run_turn(loop)
    assert seen == [tuple(arguments)]


@contract
def test_a_turn_runs_only_what_was_ready_when_it_began(loop: Loop) -> None:
    seen: list[str] = []

    def first() -> None:
        seen.append("first")
        loop.call_soon(seen.append, "next turn")
        loop.call_soon(loop.stop)

    loop.call_soon(first)
    loop.call_soon(seen.append, "second")
    loop.run_forever()
    assert seen == ["first", "second", "next turn"]


@contract
def test_a_chain_of_call_soon_starves_neither_io_nor_timers_nor_threads(loop: Loop) -> None:
    missing = {"io", "timer", "thread"}
    left, right = socket.socketpair()
    other = threading.Thread(target=lambda: loop.call_soon_threadsafe(missing.discard, "thread"))

    def spin() -> None:
        if missing:
            loop.call_soon(spin)
        else:
            loop.stop()

    with left, right:
        left.setblocking(False)
        loop.add_reader(left, lambda: (left.recv(1), missing.discard("io")))
        loop.call_later(0.001, missing.discard, "timer")
        loop.call_soon(spin)
        loop.call_soon(right.send, b"x")
        other.start()
        loop.run_forever()  # the test's time limit is what fails here
        loop.remove_reader(left)
    other.join()


@contract
def test_io_that_is_always_ready_starves_neither_callbacks_nor_timers(loop: Loop) -> None:
    missing = {"callback", "timer"}
    left, right = socket.socketpair()
    with left, right:
        loop.add_writer(left, lambda: None if missing else loop.stop())
        loop.call_later(0.001, missing.discard, "timer")
        loop.call_soon(missing.discard, "callback")
        loop.run_forever()
        loop.remove_writer(left)


@contract
def test_timers_that_are_always_due_starve_neither_callbacks_nor_io(loop: Loop) -> None:
    missing = {"callback", "io"}
    left, right = socket.socketpair()

    def again() -> None:
        if missing:
            loop.call_later(0, again)
        else:
            loop.stop()

    with left, right:
        left.setblocking(False)
        loop.add_reader(left, lambda: (left.recv(1), missing.discard("io")))
        right.send(b"x")
        loop.call_later(0, again)
        loop.call_soon(missing.discard, "callback")
        loop.run_forever()
        loop.remove_reader(left)


@contract
def test_exceptions_in_callbacks_go_to_the_exception_handler(loop: Loop) -> None:
    reports: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda loop, context: reports.append(context))

    def fail(value: int) -> None:
        raise ZeroDivisionError(value)

    handles = [loop.call_soon(fail, 1), loop.call_later(0, fail, 2), loop.call_soon_threadsafe(fail, 3)]
    run_turn(loop)
    run_turn(loop)
    assert {report["exception"].args[0] for report in reports} == {1, 2, 3}
    assert all(
        "Exception in callback" in report["message"] and "fail" in report["message"] for report in reports
    )
    assert {id(report["handle"]) for report in reports} == {id(handle) for handle in handles}


@contract
def test_the_default_exception_handler_logs(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise ZeroDivisionError("reported")

    loop.call_soon(fail)
    run_turn(loop)
    assert "Exception in callback" in caplog.text and "ZeroDivisionError: reported" in caplog.text


@contract
def test_an_exception_handler_that_fails_is_logged(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    def handler(loop: Loop, context: dict[str, Any]) -> None:
        raise ZeroDivisionError("in the handler")

    loop.set_exception_handler(handler)
    assert loop.get_exception_handler() is handler
    loop.call_soon(lambda: 1 / 0)
    run_turn(loop)
    assert "Unhandled error in exception handler" in caplog.text
    with pytest.raises(TypeError):
        loop.set_exception_handler("no callable")  # type: ignore[arg-type]


@contract
def test_many_callbacks_of_one_turn_all_run(loop: Loop) -> None:
    count = 0

    def callback() -> None:
        nonlocal count
        count += 1

    for _ in range(10_000):
        loop.call_soon(callback)
    run_turn(loop)
    assert count == 10_000


@contract
def test_arguments_are_released_after_the_callback_ran(loop: Loop) -> None:
    import weakref

    class Held:
        pass

    held = [Held() for _ in range(4)]
    gone = [weakref.ref(each) for each in held]
    loop.call_soon(id, held[0])
    loop.call_soon_threadsafe(id, held[1])
    loop.call_later(0, id, held[2])
    loop.call_soon(lambda *args: None, 1, 2, held[3])
    del held
    run_turn(loop)
    run_turn(loop)
    assert [each() for each in gone] == [None] * 4


def test_subclasses_may_have_attributes(loop: Any) -> None:
    loop.anything = 1
    assert loop.anything == 1


@contract
def test_create_future_and_create_task_are_asyncios_own(loop: Loop) -> None:
    future = loop.create_future()
    assert type(future) is asyncio.Future and future.get_loop() is loop

    async def main() -> int:
        return 3

    task = loop.create_task(main())
    assert type(task) is asyncio.Task
    assert loop.run_until_complete(task) == 3
    with pytest.raises(TypeError):
        loop.create_future(1)  # type: ignore[call-arg]
