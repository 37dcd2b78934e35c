"""The call_soon family and create_task, called by name: asyncio's arguments, signatures and errors."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import tracemalloc
from collections.abc import Coroutine
from typing import Any

import pytest

METHODS = ["call_soon", "call_soon_threadsafe", "call_later", "call_at"]
NAMES = {"call_later": "delay", "call_at": "when"}

contract = pytest.mark.contract
variable = contextvars.ContextVar("variable", default="default")


@contract
@pytest.mark.parametrize("method", METHODS)
def test_arguments_may_be_given_by_name(loop: Any, method: str) -> None:
    seen = []
    cvars = contextvars.copy_context()
    cvars.run(variable.set, "given")
    first = {NAMES[method]: 0} if method in NAMES else {}

    def callback() -> None:
        seen.append(variable.get())

    call = getattr(loop, method)
    call(**first, callback=callback)
    call(callback=callback, **first, context=None)
    call(*first.values(), callback=callback, context=cvars)
    call(context=cvars, callback=callback, **first)
    call(*first.values(), callback, **{"".join(["con", "text"]): cvars})  # not the interned name
    loop.call_later(0, loop.stop)
    loop.run_forever()
    # asyncio's timers of one time have no order
    assert sorted(seen) == ["default"] * 2 + ["given"] * 3


@contract
@pytest.mark.parametrize("method", METHODS)
def test_wrong_arguments_raise_asyncios_messages(loop: Any, method: str) -> None:
    call = getattr(loop, method)
    first = [0] if method in NAMES else []
    with pytest.raises(TypeError, match=r"call_\w+\(\) missing 1 required positional argument: 'callback'"):
        call(*first)
    with pytest.raises(TypeError, match=r"call_\w+\(\) got multiple values for argument 'callback'"):
        call(*first, print, callback=print)
    with pytest.raises(TypeError, match=r"call_\w+\(\) got an unexpected keyword argument 'unknown'"):
        call(*first, print, unknown=1, context=None)
    if first:
        with pytest.raises(TypeError, match=r"missing 2 required positional arguments: '\w+' and 'callback'"):
            call()


@contract
@pytest.mark.parametrize("method", [*METHODS, "create_task", "create_future"])
def test_signatures_are_asyncios(loop: Any, method: str) -> None:
    expected = inspect.signature(getattr(asyncio.BaseEventLoop, method))
    own = [*expected.parameters.values()][1:]
    assert inspect.signature(getattr(loop, method)) == expected.replace(parameters=own)


async def nothing() -> None:
    pass


@contract
def test_create_task_takes_a_name_and_a_context(loop: Any) -> None:
    seen = []
    cvars = contextvars.copy_context()
    cvars.run(variable.set, "given")

    async def see() -> None:
        seen.append(variable.get())

    tasks = [
        loop.create_task(see(), name="one"),
        loop.create_task(see(), context=cvars),
        loop.create_task(see(), context=cvars, name="two"),
        loop.create_task(coro=see(), name=None, context=None),
    ]
    assert [task.get_name() for task in tasks[::2]] == ["one", "two"]
    assert tasks[3].get_name().startswith("Task-")
    loop.run_until_complete(asyncio.wait(tasks))
    assert seen == ["default", "given", "given", "default"]


@contract
def test_create_task_refuses_what_asyncios_does(loop: Any) -> None:
    for arguments, named in [
        ((), {}),
        ((1,), {}),
        ((1, 2), {}),
        ((None,), {"unknown": 1}),
        ((None,), {"loop": loop}),
    ]:
        with pytest.raises(TypeError):
            loop.create_task(*arguments, **named)


@contract
@pytest.mark.parametrize(
    "named", [{}, {"name": "given"}, {"name": "given", "context": contextvars.copy_context()}]
)
def test_a_task_factory_gets_what_asyncios_loop_gives_it(loop: Any, named: dict[str, Any]) -> None:
    got = []

    def factory(loop: Any, coro: Coroutine[Any, Any, None], **rest: Any) -> Any:
        got.append(rest)
        return asyncio.Task(coro, loop=loop, **rest)

    loop.set_task_factory(factory)
    task = loop.create_task(nothing(), **named)
    stock = asyncio.new_event_loop()
    stock.set_task_factory(factory)
    other = stock.create_task(nothing(), **named)
    stock.run_until_complete(other)
    stock.close()
    assert got[0] == got[1]
    assert task.get_name() == other.get_name() or not named
    loop.run_until_complete(task)


@contract
@pytest.mark.skipif(not hasattr(asyncio, "eager_task_factory"), reason="Python 3.12 made it")
def test_eager_tasks_run_at_once(loop: Any) -> None:
    async def main() -> bool:
        loop.set_task_factory(asyncio.eager_task_factory)
        return bool(loop.create_task(nothing()).done())

    assert loop.run_until_complete(main())


@contract
def test_in_debug_mode_a_task_knows_the_line_that_made_it(loop: Any) -> None:
    loop.set_debug(True)
    for named in ({}, {"name": "one"}):
        task = loop.create_task(nothing(), **named)
        assert task._source_traceback[-1].filename == __file__, task._source_traceback
        loop.run_until_complete(task)


@pytest.mark.engines("uring", "epoll")
@pytest.mark.parametrize("name", ["context", "".join(("con", "text"))], ids=["interned", "not interned"])
def test_a_context_costs_no_memory(loop: Any, name: str) -> None:
    """Every step of a task gives it: its name is not looked up in a dictionary made for it."""

    def most(**named: Any) -> int:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        loop.call_soon(print, **named)
        return tracemalloc.get_traced_memory()[1] - before

    named: Any = {name: contextvars.copy_context()}
    tracemalloc.start()
    try:
        for _ in range(3):  # what is made once is made by now
            without, with_context = most(), most(**named)
        # The caller makes a tuple of the names and an array; a dictionary alone would be 200 bytes more.
        assert with_context <= without + 200
    finally:
        tracemalloc.stop()
