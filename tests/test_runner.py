"""run(): asyncio.run, on our loop."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any

import pytest

import uringloop


async def running_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_run_returns_the_result_and_closes_the_loop(engine: str) -> None:
    loop = uringloop.run(running_loop())
    assert isinstance(loop, uringloop.EventLoop) and loop.is_closed()
    assert f"engine={engine}" in repr(loop)


def test_run_raises_what_the_coroutine_raises(engine: str) -> None:
    async def main() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        uringloop.run(main())


def test_run_takes_debug_and_the_loops_options(engine: str) -> None:
    assert uringloop.run(running_loop(), debug=True, engine=engine, entries=8).get_debug()
    assert not uringloop.run(running_loop(), debug=False).get_debug()


def test_run_inside_a_running_loop_is_an_error(engine: str) -> None:
    async def main() -> None:
        inner = running_loop()
        try:
            uringloop.run(inner)
        finally:
            inner.close()

    with pytest.raises(RuntimeError, match=r"uringloop\.run\(\) cannot be called from a running event loop"):
        uringloop.run(main())


def test_run_of_what_is_no_coroutine_is_an_error(engine: str) -> None:
    with pytest.raises((ValueError, TypeError), match=r"coroutine|awaitable"):
        uringloop.run(1)  # type: ignore[arg-type]


def test_run_cancels_what_is_left_and_shuts_generators_and_executors_down(engine: str) -> None:
    seen: list[str] = []

    async def left() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            seen.append("task")

    async def numbers() -> Any:
        try:
            yield 1
        finally:
            seen.append("generator")

    generator = numbers()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.create_task(left())
        await anext(generator)
        await loop.run_in_executor(None, int)
        await asyncio.sleep(0)

    uringloop.run(main())
    assert seen == ["task", "generator"]


def test_asyncio_runner_takes_new_event_loop(engine: str) -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable")

    async def set_it() -> None:
        variable.set(1)

    async def get_it() -> int:
        return variable.get()

    with asyncio.Runner(loop_factory=uringloop.new_event_loop) as runner:
        runner.run(set_it())
        assert runner.run(get_it()) == 1
        assert isinstance(runner.get_loop(), uringloop.EventLoop)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"engine": "steam"}, ValueError),
        ({"entries": -1}, ValueError),
        ({"entries": 40_000}, ValueError),
        ({"entries": 1.5}, ValueError),
        ({"busy_poll": -1}, ValueError),
        ({"busy_poll": 10}, ValueError),
        ({"busy_poll": float("nan")}, ValueError),
        ({"unknown": 1}, TypeError),
    ],
)
def test_wrong_options_are_errors_that_leave_nothing(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        uringloop.new_event_loop(**options)


@pytest.mark.parametrize("entries", [1, 2, 3, 5, 64, 4096])
def test_any_number_of_entries_works(engine: str, entries: int) -> None:
    async def main() -> list[int]:
        return await asyncio.gather(*(asyncio.sleep(0.0001, i) for i in range(20)))

    assert uringloop.run(main(), entries=entries) == list(range(20))


def test_busy_polling_works(engine: str) -> None:
    import threading

    async def main() -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0.001)
        for _ in range(10):
            future = loop.create_future()
            thread = threading.Thread(target=loop.call_soon_threadsafe, args=(future.set_result, 1))
            thread.start()
            await future
            thread.join()

    uringloop.run(main(), busy_poll=0.0005)


def test_a_shortage_of_descriptors_is_an_error_that_leaves_nothing(
    engine: str, program: Callable[..., Any]
) -> None:
    code = """
import asyncio, gc, os, resource, uringloop
uringloop.run(asyncio.sleep(0))
highest = max(map(int, os.listdir("/proc/self/fd")))
for more in range(8):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1 + more, hard))
    try:
        loop = uringloop.new_event_loop()
        loop.run_until_complete(asyncio.sleep(0.001))
        loop.close()
    except OSError as error:
        print(error.errno)
        try:
            loop.close()
        except NameError:
            pass
    gc.collect()
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    assert max(map(int, os.listdir("/proc/self/fd"))) <= highest, more
uringloop.run(asyncio.sleep(0))
"""
    ended = program(code)
    assert "24" in ended.stdout.split()
    assert ended.stderr == ""
