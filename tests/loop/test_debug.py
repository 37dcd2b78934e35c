"""Debug mode: slow callbacks, wrong threads, what is no callback, and where a handle came from."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.contract


@pytest.fixture
def debugged(loop: Any) -> Any:
    loop.set_debug(True)
    return loop


def turn(loop: Any) -> None:
    loop.call_soon(loop.stop)
    loop.run_forever()


def in_thread(function: Callable[[], object]) -> BaseException | None:
    caught: list[BaseException] = []

    def body() -> None:
        try:
            function()
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    return caught[0] if caught else None


def test_set_debug_and_get_debug_agree(loop: Any) -> None:
    assert not loop.get_debug()
    loop.set_debug(True)
    assert loop.get_debug()
    loop.set_debug(False)
    assert not loop.get_debug()


def test_the_environment_switches_it_on(engine: str, program: Callable[..., Any]) -> None:
    code = (
        "import asyncio, uringloop; loop = uringloop.new_event_loop(); print(loop.get_debug()); loop.close()"
    )
    assert program(code, PYTHONASYNCIODEBUG="1").stdout == "True\n"


def test_slow_callbacks_are_logged(debugged: Any, caplog: pytest.LogCaptureFixture) -> None:
    debugged.slow_callback_duration = 0.0

    def dawdle() -> None: ...

    with caplog.at_level(logging.WARNING):
        debugged.call_soon(dawdle)
        turn(debugged)
    assert any(
        "Executing <Handle" in message and "dawdle" in message and "seconds" in message
        for message in caplog.messages
    )


def test_slow_tasks_are_logged_by_name(debugged: Any, caplog: pytest.LogCaptureFixture) -> None:
    debugged.slow_callback_duration = 0.0

    async def dawdle() -> None: ...

    with caplog.at_level(logging.WARNING):
        debugged.run_until_complete(dawdle())
    assert any("Executing <Task" in message and "dawdle" in message for message in caplog.messages)


def test_slow_protocols_and_listeners_are_logged(debugged: Any, caplog: pytest.LogCaptureFixture) -> None:
    debugged.slow_callback_duration = 0.0

    async def main() -> bytes:
        answered = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.read())
            writer.close()
            await writer.wait_closed()
            answered.set()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"slowly")
            writer.write_eof()
            received = await reader.read()
            await answered.wait()
            writer.close()
            await writer.wait_closed()
        return received

    with caplog.at_level(logging.WARNING):
        assert debugged.run_until_complete(main()) == b"slowly"
    ours = type(debugged).__module__.startswith("uringloop")
    receiving = "StreamReaderProtocol" if ours else "_read_ready"
    assert any("Executing <" in message and receiving in message for message in caplog.messages)


def test_quick_callbacks_are_not_logged(debugged: Any, caplog: pytest.LogCaptureFixture) -> None:
    debugged.slow_callback_duration = 3600
    with caplog.at_level(logging.WARNING):
        debugged.call_soon(id, 1)
        turn(debugged)
    assert not caplog.messages


@pytest.mark.parametrize("method", ["call_soon", "call_later", "call_at"])
def test_scheduling_from_the_wrong_thread_is_an_error(debugged: Any, method: str) -> None:
    args = () if method == "call_soon" else (0,)
    caught: list[BaseException | None] = []

    def other() -> None:
        caught.append(in_thread(lambda: getattr(debugged, method)(*args, print)))

    debugged.call_soon(other)
    turn(debugged)
    assert isinstance(caught[0], RuntimeError)
    assert "Non-thread-safe operation" in str(caught[0])


def test_call_soon_threadsafe_from_another_thread_is_no_error(debugged: Any) -> None:
    caught: list[BaseException | None] = []
    debugged.call_soon(lambda: caught.append(in_thread(lambda: debugged.call_soon_threadsafe(id, 1))))
    turn(debugged)
    assert caught == [None]


def test_a_loop_that_does_not_run_takes_calls_from_any_thread(debugged: Any) -> None:
    assert in_thread(lambda: debugged.call_soon(id, 1)) is None
    turn(debugged)


@pytest.mark.parametrize("method", ["call_soon", "call_soon_threadsafe", "call_later", "call_at"])
@pytest.mark.parametrize("wrong", [1, "print", None])
def test_a_callback_that_is_not_callable_is_a_type_error(debugged: Any, method: str, wrong: object) -> None:
    args = () if method.startswith("call_soon") else (0,)
    # Stock asyncio's call_later names call_at.
    name = method if method != "call_later" else "call_(later|at)"
    with pytest.raises(TypeError, match=f"a callable object was expected by {name}"):
        getattr(debugged, method)(*args, wrong)


@pytest.mark.parametrize("method", ["call_soon", "call_soon_threadsafe", "call_later", "call_at"])
def test_coroutines_are_no_callbacks(debugged: Any, method: str) -> None:
    async def coroutine_function() -> None: ...

    args = () if method.startswith("call_soon") else (0,)
    name = method if method != "call_later" else "call_(later|at)"
    coroutine = coroutine_function()
    for wrong in (coroutine, coroutine_function):
        with pytest.raises(TypeError, match=f"coroutines cannot be used with {name}"):
            getattr(debugged, method)(*args, wrong)
    coroutine.close()


def test_without_debug_mode_a_wrong_callback_is_reported_when_run(loop: Any) -> None:
    reports: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda loop, context: reports.append(context))
    loop.call_soon("no callable")
    turn(loop)
    assert isinstance(reports[0]["exception"], TypeError)


def test_handles_say_where_they_were_created(debugged: Any) -> None:
    handles = [debugged.call_soon(id, 1), debugged.call_later(0, id, 1), debugged.call_soon_threadsafe(id, 1)]
    for handle in handles:
        assert "created at" in repr(handle) and "test_debug.py" in repr(handle)
        handle.cancel()
        assert "cancelled" in repr(handle) and "created at" in repr(handle)
    turn(debugged)


def test_reports_of_exceptions_say_where_the_handle_was_created(debugged: Any) -> None:
    reports: list[dict[str, Any]] = []
    debugged.set_exception_handler(lambda loop, context: reports.append(context))
    debugged.call_soon(lambda: 1 / 0)
    turn(debugged)
    assert any(frame.filename == __file__ for frame in reports[0]["source_traceback"])


def test_readers_and_signals_work(debugged: Any) -> None:
    import signal
    import socket

    left, right = socket.socketpair()
    with left, right:
        right.send(b"x")
        debugged.add_reader(left, debugged.stop)
        debugged.run_forever()
        debugged.remove_reader(left)
    debugged.add_signal_handler(signal.SIGUSR1, debugged.stop)
    debugged.call_soon(signal.raise_signal, signal.SIGUSR1)
    debugged.run_forever()
    debugged.remove_signal_handler(signal.SIGUSR1)


def test_coroutine_origins_are_tracked_while_it_runs(debugged: Any) -> None:
    import sys

    async def depth() -> int:
        return sys.get_coroutine_origin_tracking_depth()

    assert debugged.run_until_complete(depth()) > 0
    assert sys.get_coroutine_origin_tracking_depth() == 0


def test_a_blocking_coroutine_that_was_never_awaited_is_noticed(debugged: Any) -> None:
    with pytest.warns(RuntimeWarning, match="was never awaited"):
        asyncio.sleep(0).__class__  # dropped at once
