"""Exception handlers and debug mode."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from compat.behaviours import check
from compat.behaviours.helpers import collected_errors, logged, raises

HANDLER = "set_/get_/call_/default_exception_handler"
DEBUG = "debug: slow_callback_duration, wrong thread, source tracebacks"


def _divide() -> None:
    1 / 0  # noqa: B018


@check(HANDLER)
async def handler_gets_the_loop_and_the_context() -> None:
    loop = asyncio.get_running_loop()
    seen: list[Any] = []

    def handler(of_loop: Any, context: dict[str, Any]) -> None:
        seen.append((of_loop, context))

    assert loop.get_exception_handler() is None
    loop.set_exception_handler(handler)
    assert loop.get_exception_handler() is handler
    handle = loop.call_soon(_divide)
    await asyncio.sleep(0.01)
    ((of_loop, context),) = seen
    assert of_loop is loop
    assert isinstance(context["exception"], ZeroDivisionError)
    assert context["handle"] is handle and "Exception in callback" in context["message"]
    loop.call_exception_handler({"message": "by hand"})
    assert seen[1][1]["message"] == "by hand"
    raises(TypeError, loop.set_exception_handler, 1)
    loop.set_exception_handler(None)


@check(HANDLER)
async def default_handler_logs() -> None:
    loop = asyncio.get_running_loop()
    with logged() as records:
        loop.call_soon(_divide)
        await asyncio.sleep(0.01)
        loop.default_exception_handler({"message": "straight to the log"})
    assert "Exception in callback" in records[0].getMessage() and records[0].exc_info
    assert "straight to the log" in records[1].getMessage()


@check(HANDLER)
async def failing_handler_is_logged_and_survived() -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda of_loop, context: _divide())
    with logged() as records:
        loop.call_soon(_divide)
        await asyncio.sleep(0.01)
    loop.set_exception_handler(None)
    assert any("Unhandled error in exception handler" in record.getMessage() for record in records)


@check(HANDLER)
async def lost_task_error_is_reported() -> None:
    async def fail() -> None:
        raise LookupError("nobody looks")

    with collected_errors() as contexts:
        task = asyncio.create_task(fail())
        await asyncio.sleep(0.01)
        del task
        await asyncio.sleep(0.01)
    assert isinstance(contexts[0]["exception"], LookupError)


@check(DEBUG)
async def debug_names_slow_callbacks() -> None:
    loop: Any = asyncio.get_running_loop()
    assert loop.slow_callback_duration == 0.1
    loop.set_debug(True)
    loop.slow_callback_duration = 0.02
    with logged() as records:
        loop.call_soon(time.sleep, 0.05)
        await asyncio.sleep(0.1)
    loop.set_debug(False)
    assert any("took" in record.getMessage() and "sleep" in record.getMessage() for record in records)


@check(DEBUG)
async def debug_refuses_other_threads() -> None:
    loop = asyncio.get_running_loop()
    loop.set_debug(True)
    assert loop.get_debug()
    caught: list[type[BaseException]] = []

    def elsewhere() -> None:
        for call in (lambda: loop.call_soon(int), lambda: loop.call_later(1, int)):
            try:
                call()
            except BaseException as error:
                caught.append(type(error))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    loop.set_debug(False)
    assert caught == [RuntimeError, RuntimeError], caught


@check(DEBUG)
async def debug_remembers_where_things_were_made() -> None:
    loop: Any = asyncio.get_running_loop()
    loop.set_debug(True)
    handle = loop.call_later(5, int)
    source = handle._source_traceback
    assert source and source[-1].name == "debug_remembers_where_things_were_made", source
    with collected_errors() as contexts:
        loop.call_soon(_divide)
        await asyncio.sleep(0.01)
    assert contexts[0]["source_traceback"]
    handle.cancel()
    loop.set_debug(False)


@check(DEBUG)
async def debug_refuses_coroutines_and_non_callables() -> None:
    loop: Any = asyncio.get_running_loop()
    loop.set_debug(True)

    async def coroutine() -> None:
        pass

    raises(TypeError, loop.call_soon, coroutine)
    raises(TypeError, loop.call_later, 1, coroutine)
    raises(TypeError, loop.call_soon, "not callable")
    raises(TypeError, loop.call_soon_threadsafe, coroutine)
    loop.set_debug(False)
