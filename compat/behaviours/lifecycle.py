"""Starting, stopping and closing a loop; interrupts; executors; asynchronous generators."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import gc
import signal
import threading
import warnings
from collections.abc import AsyncIterator
from typing import Any

from compat.behaviours import check
from compat.behaviours.helpers import new_loop, raises, raises_async

RUNNING = "run_forever, run_until_complete, stop, close, is_running, is_closed"
INTERRUPT = "SIGINT cancels the main task (Runner); KeyboardInterrupt from run_forever"
ASYNCGENS = "asyncgen hooks, shutdown_asyncgens"
EXECUTOR = "run_in_executor, to_thread, set_default_executor"
EXECUTOR_END = "shutdown_default_executor(timeout) 3.12"


@check(RUNNING)
def run_until_complete_gives_the_result_or_raises() -> None:
    loop = new_loop()
    assert isinstance(loop, asyncio.AbstractEventLoop)
    assert loop.run_until_complete(asyncio.sleep(0, "value")) == "value"

    async def fail() -> None:
        raise LookupError("this one")

    raises(LookupError, loop.run_until_complete, fail())
    future = loop.create_future()
    loop.call_soon(loop.stop)
    assert "stopped before" in str(raises(RuntimeError, loop.run_until_complete, future)).lower()
    loop.close()


@check(RUNNING)
def stop_finishes_the_turn_it_is_called_in() -> None:
    loop = new_loop()
    seen: list[str] = []

    def stopping() -> None:
        assert loop.is_running()
        loop.stop()
        seen.append("stopping")
        loop.call_soon(seen.append, "next turn")

    loop.call_soon(stopping)
    loop.call_soon(seen.append, "same turn")
    loop.run_forever()
    assert seen == ["stopping", "same turn"], seen
    assert not loop.is_running()
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert seen[-1] == "next turn"
    loop.close()


@check(RUNNING)
def stop_before_run_forever_runs_one_turn() -> None:
    loop = new_loop()
    seen: list[int] = []
    loop.call_soon(seen.append, 1)
    loop.stop()
    loop.run_forever()
    assert seen == [1]
    loop.close()


@check(RUNNING)
def closed_loop_refuses_work() -> None:
    loop = new_loop()
    loop.close()
    loop.close()
    assert loop.is_closed() and not loop.is_running()
    nothing = asyncio.sleep(0)
    raises(RuntimeError, loop.call_soon, print)
    raises(RuntimeError, loop.call_later, 0, print)
    raises(RuntimeError, loop.call_at, 0, print)
    raises(RuntimeError, loop.call_soon_threadsafe, print)
    raises(RuntimeError, loop.run_forever)
    raises(RuntimeError, loop.run_until_complete, nothing)
    raises(RuntimeError, loop.create_task, nothing)
    raises(RuntimeError, loop.run_in_executor, None, print)
    nothing.close()


@check(RUNNING)
async def running_loop_refuses_close_and_nesting() -> None:
    loop: Any = asyncio.get_running_loop()
    other = new_loop()
    nothing = asyncio.sleep(0)
    raises(RuntimeError, loop.close)
    raises(RuntimeError, loop.run_until_complete, nothing)
    raises(RuntimeError, other.run_until_complete, nothing)
    nothing.close()
    other.close()


@check(INTERRUPT, alone=True)
def runner_turns_sigint_into_cancel_of_main() -> None:
    seen: list[str] = []

    async def main() -> None:
        asyncio.get_running_loop().call_later(0.05, signal.raise_signal, signal.SIGINT)
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    with asyncio.Runner(loop_factory=new_loop) as runner:
        raises(KeyboardInterrupt, runner.run, main())
    assert seen == ["cancelled"]


@check(INTERRUPT, alone=True)
def sigint_wakes_a_sleeping_loop() -> None:
    loop = new_loop()
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    timer = threading.Timer(0.2, signal.pthread_kill, (main_thread, signal.SIGINT))
    loop.call_soon(timer.start)
    raises(KeyboardInterrupt, loop.run_forever)
    # and it goes on afterwards
    assert loop.run_until_complete(asyncio.sleep(0.01, 7)) == 7
    loop.close()


@check(INTERRUPT)
def keyboard_interrupt_in_a_callback_propagates() -> None:
    loop = new_loop()

    def interrupt() -> None:
        raise KeyboardInterrupt

    loop.call_soon(interrupt)
    raises(KeyboardInterrupt, loop.run_forever)
    assert not loop.is_running()
    loop.close()


@check("asyncio.run(loop_factory=) 3.12", since=(3, 12))
def asyncio_run_takes_the_loop_factory() -> None:
    made: list[Any] = []

    def factory() -> Any:
        made.append(new_loop())
        return made[-1]

    async def main() -> Any:
        return asyncio.get_running_loop()

    assert asyncio.run(main(), loop_factory=factory) is made[0]
    assert len(made) == 1 and made[0].is_closed()


@check(ASYNCGENS)
async def collected_asyncgen_runs_its_finally() -> None:
    finalised: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            finalised.append("done")

    async def take_one() -> None:
        generator = numbers()
        assert await generator.__anext__() == 1

    await take_one()
    gc.collect()
    for _ in range(5):
        await asyncio.sleep(0.01)
    assert finalised == ["done"]


@check(ASYNCGENS)
def shutdown_asyncgens_closes_the_open_ones() -> None:
    loop = new_loop()
    closed: list[int] = []

    async def numbers(which: int) -> AsyncIterator[int]:
        try:
            yield which
        finally:
            closed.append(which)

    async def start(generator: AsyncIterator[int]) -> None:
        await generator.__anext__()

    generators = [numbers(1), numbers(2)]
    for generator in generators:
        loop.run_until_complete(start(generator))
    loop.run_until_complete(loop.shutdown_asyncgens())
    assert sorted(closed) == [1, 2]
    loop.close()


@check(EXECUTOR)
async def executor_gives_results_and_errors_back() -> None:
    loop: Any = asyncio.get_running_loop()
    here = threading.get_ident()
    assert await loop.run_in_executor(None, threading.get_ident) != here
    assert await loop.run_in_executor(None, divmod, 7, 2) == (3, 1)
    await raises_async(ZeroDivisionError, loop.run_in_executor(None, divmod, 7, 0))
    with concurrent.futures.ThreadPoolExecutor(1, "mine") as pool:
        name = await loop.run_in_executor(pool, lambda: threading.current_thread().name)
    assert name.startswith("mine")


@check(EXECUTOR)
async def to_thread_carries_the_context() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("carried")
    assert await asyncio.to_thread(variable.get) == "carried"


@check(EXECUTOR)
async def default_executor_must_be_a_thread_pool() -> None:
    loop: Any = asyncio.get_running_loop()
    raises(TypeError, loop.set_default_executor, object())
    with concurrent.futures.ThreadPoolExecutor(1, "default") as pool:
        loop.set_default_executor(pool)
        name = await loop.run_in_executor(None, lambda: threading.current_thread().name)
        assert name.startswith("default")


@check(EXECUTOR_END)
async def executor_refuses_work_after_its_shutdown() -> None:
    loop: Any = asyncio.get_running_loop()
    await loop.run_in_executor(None, int)
    await loop.shutdown_default_executor()
    raises(RuntimeError, loop.run_in_executor, None, int)


# 3.12 takes a timeout, and waits for as long as it takes all the same
@check(EXECUTOR_END, since=(3, 13))
async def executor_shutdown_keeps_its_timeout() -> None:
    loop: Any = asyncio.get_running_loop()
    release = threading.Event()
    job = loop.run_in_executor(None, release.wait, 30)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        await loop.shutdown_default_executor(timeout=0.2)
    assert not job.done(), "the timeout had no effect"
    release.set()
    await job
    assert any(issubclass(warning.category, RuntimeWarning) for warning in caught)
