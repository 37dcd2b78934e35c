"""Tasks, futures, and the factories that make them."""

from __future__ import annotations

import asyncio
import contextvars
import io
from typing import Any

from compat.behaviours import check
from compat.behaviours.helpers import raises

CREATE = "create_task(name, context), create_future"
FACTORY = "get_task_factory, set_task_factory"
EAGER = "eager_task_factory 3.12"


@check(CREATE)
async def create_task_takes_name_and_context() -> None:
    loop = asyncio.get_running_loop()
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="outside")
    context = contextvars.copy_context()
    context.run(variable.set, "inside")

    async def look() -> str:
        return variable.get()

    task = loop.create_task(look(), name="looker", context=context)
    assert isinstance(task, asyncio.Task) and task.get_name() == "looker"
    assert await task == "inside"
    assert await loop.create_task(look()) == "outside"


@check(CREATE)
async def create_future_makes_asyncio_futures() -> None:
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    assert isinstance(future, asyncio.Future) and future.get_loop() is loop
    loop.call_soon(future.set_result, "set")
    assert await future == "set"


@check("create_task(eager_start=) 3.14", since=(3, 14))
async def create_task_starts_eagerly_on_request() -> None:
    loop: Any = asyncio.get_running_loop()
    seen: list[str] = []

    async def step() -> str:
        seen.append("started")
        return "done"

    task = loop.create_task(step(), eager_start=True)
    assert seen == ["started"] and task.done() and task.result() == "done"
    lazy = loop.create_task(step(), eager_start=False)
    assert seen == ["started"]
    await lazy


@check(FACTORY)
async def task_factory_gets_loop_and_coroutine() -> None:
    loop: Any = asyncio.get_running_loop()
    assert loop.get_task_factory() is None
    calls: list[Any] = []

    def factory(of_loop: Any, coro: Any) -> Any:
        # two parameters only: a call without keywords must forward none
        calls.append((of_loop, coro))
        return asyncio.Task(coro, loop=of_loop)

    loop.set_task_factory(factory)
    assert loop.get_task_factory() is factory
    coro = asyncio.sleep(0, 5)
    assert await loop.create_task(coro) == 5
    assert calls == [(loop, coro)]
    loop.set_task_factory(None)
    assert loop.get_task_factory() is None
    assert await loop.create_task(asyncio.sleep(0, 6)) == 6
    assert len(calls) == 1


@check(FACTORY)
async def task_factory_gets_a_context_when_one_is_given() -> None:
    loop: Any = asyncio.get_running_loop()
    context = contextvars.copy_context()
    seen: list[dict[str, Any]] = []

    def factory(of_loop: Any, coro: Any, **kwargs: Any) -> Any:
        seen.append(dict(kwargs))
        return asyncio.Task(coro, loop=of_loop, **kwargs)

    loop.set_task_factory(factory)
    await loop.create_task(asyncio.sleep(0), context=context)
    loop.set_task_factory(None)
    assert seen[0].get("context") is context


@check(FACTORY)
async def task_factory_must_be_callable() -> None:
    raises(TypeError, asyncio.get_running_loop().set_task_factory, 1)


@check(EAGER, since=(3, 12))
async def eager_task_factory_starts_tasks_at_once() -> None:
    loop: Any = asyncio.get_running_loop()
    loop.set_task_factory(asyncio.eager_task_factory)
    seen: list[int] = []

    async def step(number: int) -> int:
        seen.append(number)
        return number

    task = loop.create_task(step(1))
    assert seen == [1] and task.done()
    async with asyncio.TaskGroup() as group:
        group.create_task(step(2))
        assert seen == [1, 2]
    assert list(await asyncio.gather(step(3), step(4))) == [3, 4]
    loop.set_task_factory(None)


@check("python -m asyncio ps: call graphs 3.14", since=(3, 14))
async def call_graph_shows_who_awaits() -> None:
    names: Any = asyncio

    async def inner() -> str:
        out = io.StringIO()
        names.print_call_graph(file=out)
        return out.getvalue()

    async def outer() -> str:
        return await asyncio.create_task(inner(), name="inner task")

    graph = await asyncio.create_task(outer(), name="outer task")
    assert "inner task" in graph and "outer task" in graph, graph
