"""Running, stopping and running again; in which thread, and which loop inside which."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
import sysconfig
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import uringloop

pytestmark = pytest.mark.contract

Loop = asyncio.AbstractEventLoop
NewLoop = Callable[..., Any]


def in_thread(function: Callable[[], object]) -> object:
    """What the function returns or raises, run in a thread of its own."""
    answers: list[object] = []
    failures: list[BaseException] = []

    def body() -> None:
        try:
            answers.append(function())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    if failures:
        raise failures[0]
    return answers[0]


async def visit(loop: Loop) -> str:
    """Use everything once: a timer, another thread, a descriptor."""
    await asyncio.sleep(0.001)
    await loop.run_in_executor(None, int)
    await asyncio.sleep(0)
    return threading.current_thread().name


def test_run_until_complete_returns_the_result(loop: Loop) -> None:
    assert loop.run_until_complete(asyncio.sleep(0, "result")) == "result"


def test_run_until_complete_raises_what_the_coroutine_raises(loop: Loop) -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop.run_until_complete(fail())


def test_run_stop_run_continues_where_it_stopped(loop: Loop) -> None:
    seen = []
    loop.call_soon(seen.append, 1)
    loop.call_soon(loop.stop)
    loop.call_soon(seen.append, 2)
    loop.run_forever()
    assert seen == [1, 2]
    loop.call_soon(loop.stop)
    loop.call_soon(seen.append, 3)
    loop.run_forever()
    assert seen == [1, 2, 3]


def test_callbacks_scheduled_after_stop_run_in_the_next_run(loop: Loop) -> None:
    seen = []

    def stop() -> None:
        loop.stop()
        loop.call_soon(seen.append, "next run")

    loop.call_soon(stop)
    loop.run_forever()
    assert seen == []
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert seen == ["next run"]


def test_stop_before_run_runs_one_turn_without_sleeping(loop: Loop) -> None:
    seen = []
    loop.call_soon(seen.append, 1)
    loop.stop()
    loop.run_forever()
    assert seen == [1]
    loop.stop()
    loop.run_forever()


def test_is_running_and_is_closed_are_true_at_the_right_times(loop: Loop) -> None:
    async def running() -> bool:
        return loop.is_running() and asyncio.get_running_loop() is loop

    assert not loop.is_running() and not loop.is_closed()
    assert loop.run_until_complete(running())
    assert not loop.is_running()
    loop.close()
    assert loop.is_closed()


def test_stopping_before_the_future_is_done_is_an_error(loop: Loop) -> None:
    future = loop.create_future()
    loop.call_soon(loop.stop)
    with pytest.raises(RuntimeError, match="Event loop stopped before Future completed"):
        loop.run_until_complete(future)


def test_running_a_running_loop_is_an_error(loop: Loop) -> None:
    async def nested() -> None:
        inner = asyncio.sleep(0)
        try:
            loop.run_until_complete(inner)
        finally:
            inner.close()

    with pytest.raises(RuntimeError, match="This event loop is already running"):
        loop.run_until_complete(nested())
    assert loop.run_until_complete(asyncio.sleep(0, 1)) == 1


def test_running_a_loop_inside_another_is_an_error(new_loop: NewLoop) -> None:
    outer, other = new_loop(), new_loop()

    async def nested() -> None:
        inner = asyncio.sleep(0)
        try:
            other.run_until_complete(inner)
        finally:
            inner.close()

    with pytest.raises(RuntimeError, match="Cannot run the event loop while another loop is running"):
        outer.run_until_complete(nested())
    assert other.run_until_complete(asyncio.sleep(0, 1)) == 1


def test_closing_a_running_loop_is_an_error(loop: Loop) -> None:
    async def close() -> None:
        loop.close()

    with pytest.raises(RuntimeError, match="Cannot close a running event loop"):
        loop.run_until_complete(close())
    assert not loop.is_closed()


def test_a_loop_never_run_is_closed(loop: Loop) -> None:
    loop.call_soon(print, "never")
    loop.call_later(0, print, "never")
    loop.close()
    loop.close()


def test_a_closed_loop_refuses_everything(loop: Loop) -> None:
    loop.close()
    for use in (
        lambda: loop.call_soon(print),
        lambda: loop.call_soon_threadsafe(print),
        lambda: loop.call_later(1, print),
        lambda: loop.call_at(1, print),
        lambda: loop.call_at("no time", print),  # type: ignore[arg-type]
        lambda: loop.run_forever(),
        lambda: loop.run_in_executor(None, print),
        lambda: loop.add_reader(0, print),
        lambda: loop.add_writer(0, print),
    ):
        with pytest.raises(RuntimeError, match="Event loop is closed"):
            use()
    coroutine = asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="Event loop is closed"):
        loop.run_until_complete(coroutine)
    with pytest.raises(RuntimeError, match="Event loop is closed"):
        loop.create_task(coroutine)
    coroutine.close()


def test_made_in_one_thread_run_in_another_and_in_a_third(loop: Loop) -> None:
    names = [loop.run_until_complete(visit(loop))]
    names += [in_thread(lambda: loop.run_until_complete(visit(loop))) for _ in range(2)]
    names.append(loop.run_until_complete(visit(loop)))
    assert len(set(names)) == 3 and names[0] == names[3]


def test_made_and_closed_in_another_thread(new_loop: NewLoop) -> None:
    loop = in_thread(new_loop)
    assert loop.run_until_complete(asyncio.sleep(0.001, 1)) == 1
    in_thread(loop.close)
    assert loop.is_closed()


def test_the_thread_that_ran_it_is_gone_when_it_is_closed(new_loop: NewLoop) -> None:
    loop = new_loop()
    in_thread(lambda: loop.run_until_complete(visit(loop)))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


def test_many_threads_run_one_loop_in_turn(loop: Loop) -> None:
    # A thread's number is given to the next one soon: the ring must not take it for its owner's.
    for _ in range(20):
        in_thread(lambda: loop.run_until_complete(asyncio.sleep(0.0001)))


def test_several_loops_run_in_several_threads(new_loop: NewLoop) -> None:
    together = threading.Barrier(4)
    answers: list[str] = []

    def body() -> None:
        loop = new_loop()
        together.wait(30)
        answers.append(loop.run_until_complete(visit(loop)))

    threads = [threading.Thread(target=body) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(set(answers)) == 4


def test_a_hundred_loops_one_after_the_other(new_loop: NewLoop) -> None:
    for _ in range(100):
        loop = new_loop()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


def test_a_loop_dropped_unclosed_is_collected_with_a_warning(new_loop: NewLoop, engine: str) -> None:
    loop = asyncio.new_event_loop() if engine == "asyncio" else uringloop.new_event_loop()
    loop.run_until_complete(asyncio.sleep(0.001))
    loop.call_soon(print, "never", loop)
    loop.call_later(3600, print, "never", loop)
    gone = weakref.ref(loop)
    del loop
    with pytest.warns(ResourceWarning, match="unclosed event loop") as caught:
        gc.collect()
    caught.clear()  # a warning has what it is about
    gc.collect()
    assert gone() is None


@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="the last reference need not be the last there"
)
def test_a_closed_loop_is_free_without_the_collector(engine: str) -> None:
    loop = asyncio.new_event_loop() if engine == "asyncio" else uringloop.new_event_loop()
    left, right = socket.socketpair()
    with left, right:
        loop.add_reader(left, print)
        loop.add_signal_handler(signal.SIGUSR1, print)
        loop.run_until_complete(loop.run_in_executor(None, int))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
        gone = weakref.ref(loop)
        gc.disable()
        try:
            del loop
            assert gone() is None
        finally:
            gc.enable()


@pytest.mark.engines("uring", "epoll")
def test_a_closed_loop_allows_removals_and_refuses_additions(loop: Loop) -> None:
    loop.add_signal_handler(signal.SIGUSR1, print)
    left, right = socket.socketpair()
    with left, right:
        loop.close()
        assert not loop.remove_reader(left)
        assert not loop.remove_signal_handler(signal.SIGUSR1)
        with pytest.raises(RuntimeError, match="closed"):
            loop.add_signal_handler(signal.SIGUSR1, print)
        with pytest.raises(RuntimeError, match="closed"):
            loop.add_reader(left, print)
    future = loop.create_future()
    assert future.get_loop() is loop
    reading: Any = asyncio.StreamReader(loop=loop).read(1)
    assert reading.send(None).get_loop() is loop
    reading.close()


@pytest.mark.engines("uring", "epoll", "fake")
def test_a_loop_dropped_unclosed_with_operations_in_the_kernel_is_collected(engine: str) -> None:
    loop = uringloop.new_event_loop()
    left, right = socket.socketpair()
    with left, right:
        loop.add_reader(left, print, loop)
        loop.run_until_complete(asyncio.sleep(0.001))
        gone = weakref.ref(loop)
        del loop
        with pytest.warns(ResourceWarning, match="unclosed event loop") as caught:
            gc.collect()
        caught.clear()
        gc.collect()
        assert gone() is None


def test_close_drops_what_was_never_run(loop: Loop) -> None:
    class Held:
        pass

    held = Held()
    gone = weakref.ref(held)
    loop.call_soon(print, held)
    loop.call_soon_threadsafe(print, held)
    loop.call_later(3600, print, held)
    loop.call_at(loop.time(), print, held)
    del held
    loop.close()
    gc.collect()
    assert gone() is None


def test_a_handle_that_outlives_its_loop_can_be_cancelled(loop: Loop) -> None:
    handles = [loop.call_soon(print), loop.call_later(3600, print), loop.call_soon_threadsafe(print)]
    loop.close()
    for handle in handles:
        handle.cancel()
        assert handle.cancelled()


def test_the_repr_says_the_state(loop: Loop, engine: str) -> None:
    async def running() -> str:
        return repr(loop)

    running_word, closed_word = (
        ("running=True", "closed=True") if engine == "asyncio" else ("running", "closed")
    )
    assert running_word not in repr(loop) and closed_word not in repr(loop)
    assert running_word in loop.run_until_complete(running())
    loop.close()
    assert closed_word in repr(loop)


def test_async_generators_are_shut_down(loop: Loop) -> None:
    seen = []

    async def numbers() -> Any:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            seen.append("finally")

    generator = numbers()

    async def half() -> int:
        return await anext(generator)

    assert loop.run_until_complete(half()) == 1
    loop.run_until_complete(loop.shutdown_asyncgens())
    assert seen == ["finally"]


def test_an_abandoned_async_generator_is_finalised_by_its_loop(loop: Loop) -> None:
    seen = []

    async def numbers() -> Any:
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            seen.append("finally")

    async def half() -> None:
        generator = numbers()
        await anext(generator)
        del generator
        gc.collect()
        for _ in range(5):
            await asyncio.sleep(0)

    loop.run_until_complete(half())
    assert seen == ["finally"]


def test_running_restores_the_async_generator_hooks(loop: Loop) -> None:
    before = sys.get_asyncgen_hooks()
    loop.run_until_complete(asyncio.sleep(0))
    assert sys.get_asyncgen_hooks() == before


def test_an_async_generator_after_shutdown_warns(loop: Loop) -> None:
    async def numbers() -> Any:
        yield 1

    loop.run_until_complete(loop.shutdown_asyncgens())

    async def use() -> None:
        generator = numbers()
        await anext(generator)
        await generator.aclose()

    with pytest.warns(ResourceWarning, match=r"was scheduled after loop\.shutdown_asyncgens"):
        loop.run_until_complete(use())


def test_executors_run_functions_and_are_shut_down(loop: Loop) -> None:
    names = [
        loop.run_until_complete(loop.run_in_executor(None, lambda: threading.current_thread().name))
        for _ in range(3)
    ]
    assert all(name.startswith("asyncio_") for name in names)
    loop.run_until_complete(loop.shutdown_default_executor())
    with pytest.raises(RuntimeError, match="Executor shutdown has been called"):
        loop.run_in_executor(None, print)


def test_a_default_executor_that_is_no_executor_is_refused(loop: Loop) -> None:
    with pytest.raises(TypeError, match="ThreadPoolExecutor"):
        loop.set_default_executor(object())  # type: ignore[arg-type]


@pytest.mark.engines("uring", "epoll", "fake")
def test_keyboard_interrupt_of_a_callback_leaves_run_forever(loop: Loop) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    seen = []
    loop.call_soon(interrupt)
    loop.call_soon(seen.append, "not lost")
    with pytest.raises(KeyboardInterrupt):
        loop.run_forever()
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert seen == ["not lost"]


@pytest.mark.engines("uring", "epoll", "fake")
def test_system_exit_in_a_task_leaves_run_forever(loop: Loop) -> None:
    async def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        loop.run_until_complete(leave())
    gc.collect()


def test_no_resource_warning_for_a_closed_loop(new_loop: NewLoop) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loop = new_loop()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        del loop
        gc.collect()
