"""create_task and task factories, call by call as CPython's own loop makes them."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.contract

Loop = asyncio.AbstractEventLoop
variable = contextvars.ContextVar("variable", default="default")

EAGER_START = "eager_start" in inspect.signature(asyncio.Task).parameters and sys.version_info >= (3, 14)


async def answer() -> str:
    return variable.get()


def test_create_task_with_a_name_and_a_context(loop: Loop) -> None:
    context = contextvars.copy_context()
    context.run(variable.set, "in the context")
    task = loop.create_task(answer(), name="named", context=context)
    assert task.get_name() == "named"
    assert loop.run_until_complete(task) == "in the context"
    assert loop.run_until_complete(loop.create_task(answer(), name=None, context=None)) == "default"


def test_create_task_takes_keywords_in_any_order_and_repeatedly(loop: Loop) -> None:
    context = contextvars.copy_context()
    context.run(variable.set, "in the context")
    for _ in range(2):
        task = loop.create_task(answer(), context=context, name="named")
        assert task.get_name() == "named"
        assert loop.run_until_complete(task) == "in the context"
        task = loop.create_task(answer(), name="only")
        assert task.get_name() == "only"
        assert loop.run_until_complete(task) == "default"
        assert loop.run_until_complete(loop.create_task(answer(), context=context)) == "in the context"


@pytest.mark.parametrize(
    "keywords", [{"loop": None}, {"nonsense": 1}, {"name": "n", "nonsense": 1, "more": 2}]
)
def test_keywords_that_create_task_does_not_have_are_refused(loop: Loop, keywords: dict[str, Any]) -> None:
    coroutine = answer()
    with pytest.raises(TypeError):
        loop.create_task(coroutine, **keywords)
    coroutine.close()


def test_unnamed_tasks_have_names_that_differ(loop: Loop) -> None:
    tasks = [loop.create_task(answer()) for _ in range(3)]
    assert len({task.get_name() for task in tasks}) == 3
    for task in tasks:
        loop.run_until_complete(task)


def test_tasks_and_futures_are_of_the_classes_found_in_asyncio(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OurTask(asyncio.Task[Any]):
        pass

    class OurFuture(asyncio.Future[Any]):
        pass

    async def main() -> str:
        assert type(asyncio.current_task()) is OurTask
        assert type(loop.create_future()) is OurFuture
        await asyncio.sleep(0.001)
        return await loop.create_task(answer())

    monkeypatch.setattr(asyncio.tasks, "Task", OurTask)
    monkeypatch.setattr(asyncio.futures, "Future", OurFuture)
    assert loop.run_until_complete(main()) == "default"


def test_create_task_refuses_objects_that_are_no_coroutines(loop: Loop) -> None:
    with pytest.raises(TypeError, match="a coroutine was expected"):
        loop.create_task(42)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        loop.create_task()  # type: ignore[call-arg]
    coroutine = answer()
    with pytest.raises(TypeError):
        loop.create_task(coroutine, unknown=1)  # type: ignore[call-arg]
    coroutine.close()


def test_a_task_factory_gets_exactly_what_was_given(loop: Loop) -> None:
    calls: list[dict[str, Any]] = []

    def factory(loop: Loop, coroutine: Any, **kwargs: Any) -> Any:
        calls.append(kwargs)
        kwargs.pop("eager_start", None)
        return asyncio.Task(coroutine, loop=loop, **kwargs)

    context = contextvars.copy_context()
    loop.set_task_factory(factory)  # type: ignore[arg-type]
    assert loop.get_task_factory() is factory
    given: list[dict[str, Any]] = [{}, {"name": "n"}, {"context": context}, {"name": "n", "context": context}]
    for kwargs in given:
        loop.run_until_complete(loop.create_task(answer(), **kwargs))

    # What CPython's own BaseEventLoop hands on differs by version; it is the measure.
    expected: list[dict[str, Any]] = []

    class Stock(asyncio.BaseEventLoop):
        def _make_self_pipe(self) -> None: ...

    stock = Stock()
    stock.set_task_factory(
        lambda loop, coroutine, **kwargs: expected.append(kwargs) or coroutine.close() or _Task()
    )  # type: ignore[func-returns-value, arg-type, return-value]
    for kwargs in given:
        stock.create_task(answer(), **kwargs)
    stock.close()
    assert calls == [{key: value for key, value in each.items() if key != "eager_start"} for each in expected]


class _Task:
    def set_name(self, name: str) -> None: ...


def test_a_task_factory_may_return_what_it_likes(loop: Loop) -> None:
    marker = _Task()

    def factory(loop: Loop, coroutine: Any, **kwargs: Any) -> Any:
        coroutine.close()
        return marker

    loop.set_task_factory(factory)
    assert loop.create_task(answer()) is marker  # type: ignore[comparison-overlap]
    loop.set_task_factory(None)
    assert loop.get_task_factory() is None


def test_a_task_factory_must_be_callable(loop: Loop) -> None:
    with pytest.raises(TypeError, match="task factory must be a callable or None"):
        loop.set_task_factory(1)  # type: ignore[arg-type]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with Python 3.12")
def test_the_eager_task_factory_starts_tasks_at_once(loop: Loop) -> None:
    loop.set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined]
    seen = []

    async def child() -> str:
        seen.append("child")
        return "done"

    async def suspended() -> str:
        seen.append("begun")
        await asyncio.sleep(0)
        return "later"

    async def main() -> list[str]:
        task = loop.create_task(child())
        seen.append("main")
        assert task.done()
        other = loop.create_task(suspended())
        assert not other.done()
        return [await task, await other]

    assert loop.run_until_complete(main()) == ["done", "later"]
    assert seen == ["child", "main", "begun"]


@pytest.mark.skipif(not EAGER_START, reason="create_task(eager_start=) came with Python 3.14")
def test_eager_start_starts_one_task_at_once(loop: Loop) -> None:
    async def child() -> str:
        return "done"

    async def main() -> None:
        eager = loop.create_task(child(), eager_start=True)  # type: ignore[call-arg]
        assert eager.done()
        lazy = loop.create_task(child(), eager_start=False)  # type: ignore[call-arg]
        assert not lazy.done()
        await lazy

    loop.run_until_complete(main())


def test_all_tasks_and_current_task_know_the_loop(loop: Loop) -> None:
    async def main() -> None:
        other = loop.create_task(asyncio.sleep(0))
        assert asyncio.current_task() in asyncio.all_tasks()
        assert other in asyncio.all_tasks()
        await other

    loop.run_until_complete(main())


WAITING = """
import asyncio, sys, uringloop

async def leaf():
    print("waiting", flush=True)
    await asyncio.get_running_loop().create_future()

async def parent():
    async with asyncio.TaskGroup() as group:
        group.create_task(leaf(), name="the leaf")

(asyncio if sys.argv[1] == "asyncio" else uringloop).run(parent())
"""


@pytest.mark.skipif(sys.version_info < (3, 14), reason="python -m asyncio ps came with Python 3.14")
@pytest.mark.parametrize("command", ["ps", "pstree"])
def test_another_process_sees_the_tasks(engine: str, command: str) -> None:
    waiting = [sys.executable, "-c", WAITING, engine]
    with subprocess.Popen(waiting, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "waiting\n"
            look = [sys.executable, "-m", "asyncio", command, str(process.pid)]
            shown = subprocess.run(look, capture_output=True, text=True, timeout=30)
        finally:
            process.kill()
    if "permission" in shown.stderr.lower():
        pytest.skip(f"processes may not be looked at here: {shown.stderr}")
    assert shown.returncode == 0, shown.stderr
    assert "the leaf" in shown.stdout and "parent" in shown.stdout, shown.stdout


def test_gather_timeouts_and_queues_work(loop: Loop) -> None:
    async def main() -> None:
        assert await asyncio.gather(*(asyncio.sleep(0.0001 * (i % 3), i) for i in range(100))) == list(
            range(100)
        )
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.sleep(3600), 0.001)
        queue: asyncio.Queue[int] = asyncio.Queue()
        task = loop.create_task(queue.get())
        await asyncio.sleep(0)
        queue.put_nowait(7)
        assert await task == 7
        cancelled = loop.create_task(asyncio.sleep(3600))
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled

    loop.run_until_complete(main())
