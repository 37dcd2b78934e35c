"""Scenarios: handles, readers, signals, programs, running and closing a loop, and what asyncio synchronises with."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import signal
import sys
import warnings
import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any

import uringloop
from tests.regressions.scenarios.common import Log, handled, scenario, tell, tell_async, turns, until


@scenario
def reader_that_closes_its_own_descriptor(loop: Any) -> Log:
    log: Log = []
    source, sink = os.pipe()
    os.write(sink, b"x")

    def readable() -> None:
        log.append("called")
        tell(log, "close", lambda: os.close(source))

    async def main() -> None:
        loop.add_reader(source, readable)
        await turns()
        tell(log, "removed", lambda: loop.remove_reader(source))

    loop.run_until_complete(main())
    os.close(sink)
    return log


@scenario
def reader_that_raises_systemexit(loop: Any) -> Log:
    log: Log = []
    source, sink = os.pipe()
    os.write(sink, b"xy")

    def readable() -> None:
        log.append(os.read(source, 1))
        if len(log) == 1:
            raise SystemExit(3)
        loop.remove_reader(source)

    loop.add_reader(source, readable)
    tell(log, "first run", lambda: loop.run_until_complete(turns()))
    loop.run_until_complete(turns())
    return log


def send(*numbers: int) -> None:
    for number in numbers:
        os.kill(os.getpid(), number)


@scenario
def signals_that_come_together(loop: Any) -> Log:
    log: Log = []
    one, two = signal.SIGUSR1, signal.SIGUSR2

    async def main() -> None:
        loop.add_signal_handler(one, log.append, "one")
        loop.add_signal_handler(two, log.append, "two")
        send(one, two, one, one)
        await until(lambda: {"one", "two"} <= set(log))
        await turns()
        loop.remove_signal_handler(one)
        loop.remove_signal_handler(two)

    loop.run_until_complete(main())
    return log


@scenario
def signal_whose_handler_is_replaced_before_it_runs(loop: Any) -> Log:
    log: Log = []

    async def main() -> None:
        loop.add_signal_handler(signal.SIGUSR1, log.append, "first")
        send(signal.SIGUSR1)
        loop.add_signal_handler(signal.SIGUSR1, log.append, "second")
        await until(lambda: log)
        await turns()
        loop.remove_signal_handler(signal.SIGUSR1)

    loop.run_until_complete(main())
    return log


@scenario
def order_of_callbacks_and_timers(loop: Any) -> Log:
    log: Log = []

    async def main() -> None:
        loop.call_later(0, log.append, "later 0")
        loop.call_soon(log.append, "soon 1")
        loop.call_soon_threadsafe(log.append, "threadsafe")
        loop.call_at(0, log.append, "at 0")
        loop.call_soon(log.append, "soon 2")
        loop.call_later(-1, log.append, "later -1")
        loop.call_later(float("nan"), log.append, "later nan")
        loop.call_later(-float("inf"), log.append, "later -inf")
        loop.call_later(0.001, log.append, "later")  # and what has no number sinks in asyncio's heap
        await until(lambda: len(log) == 9)

    loop.run_until_complete(main())
    return log


@scenario
def handles_and_wrong_arguments(loop: Any) -> Log:
    log: Log = []
    timer = loop.call_later(5, print)
    calls: dict[str, Callable[[], Any]] = {
        "call_soon None": lambda: loop.call_soon(None).cancelled(),
        "call_later without": lambda: loop.call_later(1),
        "call_soon without": lambda: loop.call_soon(),
        "call_at None": lambda: loop.call_at(None, print),
        "call_later too late": lambda: loop.call_later(10**400, print),
        "call_soon by name": lambda: loop.call_soon(print, foo=1),
        "no context": lambda: loop.call_soon_threadsafe(print, context=5).cancel(),
        "call_later True": lambda: loop.call_later(True, print).cancel(),
        "cancel twice": lambda: timer.cancel() or timer.cancel() or timer.cancelled(),
        "equal": lambda: timer == timer,
        "earlier": lambda: timer < loop.call_later(6, print),
        "hash": lambda: hash(timer) is not None,
        "weakref": lambda: weakref.ref(timer)() is timer,
        "set attribute": lambda: setattr(timer, "x", 1),
        "when": lambda: timer.when() > 0,
        "run 5": lambda: loop.run_until_complete(5),
        "task factory": lambda: loop.set_task_factory(5),
        "exception handler": lambda: loop.set_exception_handler(5),
        "create_task": lambda: loop.create_task(5),
        "call_exception_handler": lambda: loop.call_exception_handler(5),
    }
    for name, call in calls.items():
        tell(log, name, call)
    return log


@scenario
def context_that_is_entered_already(loop: Any) -> Log:
    log: Log = []
    context = contextvars.copy_context()

    def handler(loop: Any, told: dict[str, Any]) -> None:
        log.append((told["message"][:29], type(told["exception"]).__name__))

    def inner() -> None:
        loop.call_soon(log.append, "in", context=context)
        loop.call_soon(log.append, "second", context=context)._run()

    async def main() -> None:
        context.run(inner)
        await turns()

    loop.set_exception_handler(handler)
    loop.run_until_complete(main())
    return log


@scenario
def stop_before_and_twice(loop: Any) -> Log:
    log: Log = []
    loop.stop()
    loop.call_soon(log.append, 1)
    loop.run_forever()
    log.append("first")
    loop.call_soon(loop.stop)
    loop.call_soon(log.append, 2)
    loop.call_soon(lambda: loop.call_soon(log.append, 3))
    loop.run_forever()
    log.append("second")
    loop.call_soon(loop.stop)
    loop.run_forever()
    return log


@scenario
def exception_handler_that_raises(loop: Any) -> Log:
    log: Log = []

    def failing(loop: Any, context: dict[str, Any]) -> None:
        log.append(context["message"][:25])
        raise RuntimeError("in the handler")

    def interrupting(loop: Any, context: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    for handler in (failing, interrupting):
        loop.set_exception_handler(handler)
        loop.call_soon(lambda: 1 / 0)
        loop.call_soon(log.append, handler.__name__)
        tell(log, "run", lambda: loop.run_until_complete(turns()))
    loop.run_until_complete(turns())
    return log


@scenario
def program_that_has_ended(loop: Any) -> Log:
    log: Log = []

    class Protocol(asyncio.SubprocessProtocol):
        def pipe_data_received(self, fd: int, data: bytes) -> None:
            log.append((fd, data))

        def pipe_connection_lost(self, fd: int, error: Exception | None) -> None:
            log.append(("pipe", fd, type(error).__name__))

        def process_exited(self) -> None:
            log.append("exited")

        def connection_lost(self, error: Exception | None) -> None:
            log.append(("lost", type(error).__name__))

    async def main() -> None:
        transport, _ = await loop.subprocess_exec(
            Protocol, sys.executable, "-S", "-c", "print('x', flush=True)", stdin=asyncio.subprocess.PIPE
        )
        await until(lambda: ("lost", "NoneType") in log)
        tell(log, "status", transport.get_returncode)
        for call in (transport.kill, transport.terminate, lambda: transport.send_signal(9)):
            tell(log, "signal", call)
        transport.close()

    loop.run_until_complete(main())
    return sorted(log, key=repr)


@scenario
def methods_of_a_closed_loop(loop: Any) -> Log:
    log: Log = []
    loop.close()
    calls: dict[str, Callable[[], Any]] = {
        "call_soon": lambda: loop.call_soon(print),
        "call_soon_threadsafe": lambda: loop.call_soon_threadsafe(print),
        "call_later": lambda: loop.call_later(1, print),
        "call_at": lambda: loop.call_at(1, print),
        "create_task": lambda: loop.create_task(turns()),
        "create_future": lambda: type(loop.create_future()).__name__,
        "run_forever": lambda: loop.run_forever(),
        "add_reader": lambda: loop.add_reader(0, print),
        "remove_reader": lambda: loop.remove_reader(0),
        "remove_writer": lambda: loop.remove_writer(0),
        "add_signal_handler": lambda: loop.add_signal_handler(signal.SIGUSR1, print),
        "remove_signal_handler": lambda: loop.remove_signal_handler(signal.SIGUSR1),
        "run_in_executor": lambda: loop.run_in_executor(None, print),
        "close": lambda: loop.close(),
        "stop": lambda: loop.stop(),
        "is_closed": lambda: loop.is_closed(),
        "time": lambda: loop.time() > 0,
        "run_until_complete": lambda: loop.run_until_complete(turns()),
        "set_debug": lambda: loop.set_debug(True),
        "repr": lambda: repr(loop)[:1],
        "handler": lambda: loop.default_exception_handler({"message": "x"}),
    }
    for name, call in calls.items():
        tell(log, name, call)
    return log


@scenario
def generators_and_executor_at_the_end(loop: Any) -> Log:
    log: Log = []
    kept: list[Any] = []

    async def generator() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            log.append("closed")
            await asyncio.sleep(0)
            log.append("after")

    async def main() -> None:
        kept.append(generator())
        await kept[0].__anext__()
        async for _ in generator():
            break
        gc.collect()
        await turns()
        log.append("main ends")
        await loop.run_in_executor(None, log.append, "in the executor")

    async def late() -> None:
        await generator().__anext__()

    loop.run_until_complete(main())
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())
    tell(log, "executor", lambda: loop.run_until_complete(loop.run_in_executor(None, print)))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        loop.run_until_complete(late())
        gc.collect()
    log.append([str(warning.message)[:22] for warning in warned])
    return log


@scenario
def odd_arguments_of_locks_and_queues(loop: Any) -> Log:
    log: Log = []
    their = uringloop if isinstance(loop, uringloop.EventLoop) else asyncio

    async def main() -> None:
        for size in (float("inf"), 1.5, "x", -1, None, True):
            tell(log, ("Queue", size), lambda size=size: type(their.Queue(size)).__name__)
        queue = their.Queue(2.0)
        queue.put_nowait(1)
        queue.put_nowait(2)
        tell(log, "full", queue.full)
        for value in (0, -1, 1.5, "x", True):
            tell(log, ("Semaphore", value), lambda value=value: their.Semaphore(value).locked())
        if hasattr(asyncio, "Barrier"):
            for parties in (1, 1.5):
                tell(log, ("Barrier", parties), lambda parties=parties: their.Barrier(parties).parties)
        tell(log, "Lock", their.Lock().release)
        condition = their.Condition()
        tell(log, "notify", condition.notify)
        tell(log, "notify_all", condition.notify_all)
        await tell_async(log, "Condition", condition.wait)
        event = their.Event()
        await tell_async(log, "Event", event.wait)
        event.set()
        await tell_async(log, "Event that is set", event.wait)
        tell(log, "BoundedSemaphore", their.BoundedSemaphore(1).release)
        queue = their.PriorityQueue()
        queue.put_nowait((1, {}))
        tell(log, "cannot be compared", lambda: queue.put_nowait((1, {})))
        log.append(queue.qsize())
        tell(log, "task_done", their.Queue().task_done)

    loop.run_until_complete(main())
    return log


@scenario
def acquire_that_is_not_awaited(loop: Any) -> Log:
    log: Log = []
    their = uringloop if isinstance(loop, uringloop.EventLoop) else asyncio

    async def main() -> None:
        their.Lock().acquire()

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        loop.run_until_complete(main())
        gc.collect()
    log.append([(warning.category.__name__, str(warning.message)) for warning in warned])
    return log


@scenario
def callback_that_fails(loop: Any) -> Log:
    """In each of the ways to have one called."""
    log: Log = []
    handled(loop, log)

    def fails() -> None:
        raise ValueError

    async def main() -> None:
        loop.call_soon(fails)
        loop.call_later(0, fails)
        loop.call_soon_threadsafe(fails)
        future = loop.create_future()
        future.add_done_callback(lambda future: 1 / 0)
        future.set_result(None)
        await until(lambda: len(log) == 4)

    loop.run_until_complete(main())
    return sorted(entry[2] for entry in log)
