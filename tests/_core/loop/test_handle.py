"""Handles: no part in garbage collection, yet whatever keeps one, nothing is kept for ever."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import re
import signal
import socket
import sys
import sysconfig
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import uringloop

pytestmark = pytest.mark.contract


class Keeper:
    """Has the handles of its own methods, as connections have those of their timeouts."""

    handle: Any = None

    def told(self, *args: object) -> None: ...

    def fails(self, *args: object) -> None:
        raise ZeroDivisionError


def keeps_reports(loop: Any, keeper: Any) -> None:
    keeper.reports = []
    loop.set_exception_handler(lambda loop, context: keeper.reports.append(context))
    loop.call_soon(keeper.fails, loop)


def watches(loop: Any, keeper: Any) -> None:
    keeper.sockets = left, right = socket.socketpair()
    keeps_reports(loop, keeper)
    right.send(b"x")
    loop.add_reader(left, keeper.fails, loop)


def listens(loop: Any, keeper: Any) -> None:
    keeps_reports(loop, keeper)
    loop.add_signal_handler(signal.SIGUSR1, keeper.fails, loop)
    loop.call_soon(signal.raise_signal, signal.SIGUSR1)


def keep(handle: Callable[[Any, Any], Any]) -> Callable[[Any, Any], None]:
    return lambda loop, keeper: setattr(keeper, "handle", handle(loop, keeper))


WAYS: dict[str, Callable[[Any, Any], None]] = {
    "ran": keep(lambda loop, keeper: loop.call_soon(keeper.told, loop)),
    "ran with many arguments": keep(lambda loop, keeper: loop.call_soon(keeper.told, 1, loop, keeper)),
    "ran from another thread": keep(lambda loop, keeper: loop.call_soon_threadsafe(keeper.told, loop)),
    "raised": keep(lambda loop, keeper: loop.call_soon(keeper.fails, loop)),
    "was a timer that is not due": keep(lambda loop, keeper: loop.call_later(3600, keeper.told, loop)),
    "was a timer that ran": keep(lambda loop, keeper: loop.call_later(0, keeper.told, loop)),
    "was never run": lambda loop, keeper: loop.call_soon(
        lambda: setattr(keeper, "handle", loop.call_soon(keeper.told, loop))
    ),
    "was reported": keeps_reports,
    "was a reader's and reported": watches,
    "was a signal's and reported": listens,
}


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_handle_keeps_nothing_alive_for_ever(engine: str, way: str, debug: bool) -> None:
    loop = asyncio.new_event_loop() if engine == "asyncio" else uringloop.new_event_loop()
    loop.set_debug(debug)
    loop.set_exception_handler(lambda loop, context: None)
    keeper = Keeper()
    WAYS[way](loop, keeper)
    for _ in range(30):
        loop.call_soon(loop.stop)
        loop.run_forever()
    for end in getattr(keeper, "sockets", ()):
        loop.remove_reader(end)
        end.close()
    loop.close()
    gone = weakref.ref(keeper)
    del keeper, loop
    gc.collect()
    gc.collect()
    assert gone() is None


def test_timer_handles_are_ordered_by_their_time(loop: Any) -> None:
    early, late = loop.call_at(loop.time() + 10, print), loop.call_at(loop.time() + 20, print)
    assert early < late and early <= late and late > early and late >= early and early != late
    assert not early > late and not late < early
    assert sorted([late, early]) == [early, late]
    assert early == early and hash(early) == hash(early.when())
    assert len({early, late}) == 2
    with pytest.raises(TypeError):
        assert early < 5
    early.cancel()
    late.cancel()


@pytest.mark.skipif(not hasattr(asyncio.Handle, "get_context"), reason="get_context came with Python 3.12")
def test_a_handle_gives_its_context(loop: Any) -> None:
    handle = loop.call_soon(print)
    handle.get_context().run(id, 1)
    handle.cancel()


def test_handles_are_of_asyncios_classes(loop: Any) -> None:
    soon, later = loop.call_soon(print), loop.call_later(10, print)
    assert isinstance(soon, asyncio.Handle) and not isinstance(soon, asyncio.TimerHandle)
    assert isinstance(later, asyncio.TimerHandle) and isinstance(later, asyncio.Handle)
    soon.cancel()
    later.cancel()


@pytest.mark.parametrize("way", ["call_soon", "call_soon_threadsafe", "call_later"])
def test_a_weak_reference_to_a_handle_ends_with_it(loop: Any, way: str) -> None:
    for _ in range(3):  # the second is made of what the first left
        handle = loop.call_later(0, id, 1) if way == "call_later" else getattr(loop, way)(id, 1)
        ended: list[object] = []
        reference = weakref.ref(handle, ended.append)
        assert reference() is handle
        handle.cancel()
        del handle
        for _ in range(3):
            loop.call_soon(loop.stop)
            loop.run_forever()
        gc.collect()
        assert reference() is None and ended == [reference]


since_3_14 = pytest.mark.skipif(
    not hasattr(asyncio.events, "_ThreadSafeHandle"), reason="asyncio does so since 3.14"
)


@since_3_14
@pytest.mark.parametrize("question", ["cancel", "cancelled"])
def test_a_question_of_another_thread_waits_for_the_running_callback(loop: Any, question: str) -> None:
    begun, go_on = threading.Event(), threading.Event()
    seen: list[str] = []

    def callback() -> None:
        begun.set()
        go_on.wait(10)
        seen.append("callback ended")
        loop.stop()

    handle = loop.call_soon_threadsafe(callback)
    assert isinstance(handle, asyncio.events._ThreadSafeHandle)  # type: ignore[attr-defined]

    def ask() -> None:
        begun.wait(10)
        threading.Timer(0.01, go_on.set).start()
        getattr(handle, question)()
        seen.append("answered")

    asking = threading.Thread(target=ask)
    asking.start()
    loop.run_forever()
    asking.join(10)
    assert seen == ["callback ended", "answered"]


@since_3_14
def test_a_callback_may_ask_its_own_handle(loop: Any) -> None:
    answers: list[Any] = []

    def callback() -> None:
        answers.append(handle.cancelled())
        handle.cancel()
        answers.append(handle.cancelled())
        loop.stop()

    handle = loop.call_soon_threadsafe(callback)
    loop.run_forever()
    assert answers == [False, True]


@pytest.mark.parametrize("schedule", ["call_soon", "call_later"])
def test_the_memory_of_a_burst_comes_back_while_little_is_called(loop: Any, schedule: str) -> None:
    async def main() -> int:
        before = sys.getallocatedblocks()
        call = getattr(loop, schedule)
        delay = [0] if schedule == "call_later" else []
        for _ in range(50_000):
            call(*delay, int)
        await asyncio.sleep(0.001)
        for _ in range(20):
            await asyncio.sleep(0.001)
        return sys.getallocatedblocks() - before

    assert loop.run_until_complete(main()) < 10_000


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("method", ["call_soon", "call_soon_threadsafe", "call_later"])
def test_a_handle_is_shown_as_asyncios(loop: Any, debug: bool, method: str) -> None:
    def shown(of: Any) -> list[str]:
        of.set_debug(debug)
        handle = getattr(of, method)(*[3600] * (method == "call_later"), print, "argument")
        before = repr(handle)
        handle.cancel()
        return [re.sub(r"when=[\d.]+", "when=", text) for text in (before, repr(handle))]

    stock = asyncio.new_event_loop()
    try:
        assert shown(loop) == shown(stock)
    finally:
        stock.close()


def test_timer_handles_compare_as_asyncios(loop: Any) -> None:
    one, same, other = (loop.call_at(5, callback) for callback in (print, print, repr))
    later = loop.call_at(6, print)
    assert one == same and one <= same and one >= same and (one != same) is False
    assert one != other and not one <= other and not one >= other and not one < other and not one > other
    assert one < later and one <= later and later > one and later >= one and one != later
    assert one != 5 and hash(one) == hash(other)


@pytest.mark.engines("uring", "epoll")
def test_a_callback_that_runs_its_own_handle_keeps_what_it_was_called_with(loop: Any) -> None:
    class Iterator_:
        def __next__(self) -> None:
            handles[0]._run()  # an error: its context is entered already
            handles[0].cancel()
            handles[0]._run()
            seen.append(alive() is not None)
            raise StopIteration

    class Argument:
        pass

    seen: list[object] = []
    handles: list[Any] = []
    argument = Argument()
    alive = weakref.ref(argument)
    loop.set_exception_handler(lambda loop, context: None)
    # next() does not own what it is called with, and returns the second of it at last.
    handles.append(loop.call_soon(next, Iterator_(), argument))
    del argument
    loop.call_soon(loop.stop)
    loop.run_forever()
    handles.clear()  # free-threaded Python 3.13 keeps the class for ever, and what its functions refer to
    assert seen == [True]


MANY = 3000
COLOUR: contextvars.ContextVar[Any] = contextvars.ContextVar("COLOUR")
WAYS_TO_CALL = ["call_soon", "call_soon_threadsafe", "call_later"]


def contexts_the_collector_sees() -> int:
    return sum(type(found) is contextvars.Context for found in gc.get_objects())


def turns_of(loop: Any, count: int) -> None:
    for _ in range(count):
        loop.call_soon(loop.stop)
        loop.run_forever()


def called(loop: Any, way: str, callback: Callable[[], object]) -> Any:
    return getattr(loop, way)(*((0, callback) if way == "call_later" else (callback,)))


@pytest.mark.engines("uring")
@pytest.mark.relies_on("own_context")
@pytest.mark.skipif(bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="each has its context at once")
@pytest.mark.parametrize("way", WAYS_TO_CALL)
def test_many_callbacks_make_no_contexts(loop: Any, way: str) -> None:
    COLOUR.set(None)  # there is a current context
    before = contexts_the_collector_sees()
    handles = [called(loop, way, print) for _ in range(MANY)]
    assert contexts_the_collector_sees() <= before + 1  # one is there to be lent
    shown = [handle._context for handle in handles]
    assert all(map(gc.is_tracked, shown)) and len(set(map(id, shown))) == MANY
    assert handles[0]._context is shown[0]
    assert MANY <= contexts_the_collector_sees() - before <= MANY + 1
    for handle in handles:
        handle.cancel()
    del handle, handles
    turns_of(loop, 3)
    assert all(map(gc.is_tracked, shown))
    del shown
    assert contexts_the_collector_sees() <= before + 1


@pytest.mark.parametrize("way", WAYS_TO_CALL)
@pytest.mark.parametrize("inside", [False, True])
def test_a_context_asked_for_stays_the_handles(loop: Any, way: str, inside: bool) -> None:
    """Before, in or after the callback: what the callback set is in it, and no other callback's."""
    seen: dict[str, Any] = {}

    def first() -> None:
        if inside:
            seen["in"] = handle._context
        COLOUR.set("first")

    def second() -> None:
        seen["second"] = COLOUR.get(None)
        COLOUR.set("second")

    handle = contextvars.Context().run(called, loop, way, first)
    if not inside:
        seen["in"] = handle._context
    turns_of(loop, 3)
    contextvars.Context().run(called, loop, way, second)
    turns_of(loop, 3)
    assert seen["second"] is None
    assert handle._context is seen["in"]
    assert seen["in"][COLOUR] == "first"
    assert seen["in"].run(COLOUR.get) == "first"  # it was left


@pytest.mark.parametrize("way", WAYS_TO_CALL)
def test_a_context_asked_for_later_has_what_the_callback_set(loop: Any, way: str) -> None:
    handle = contextvars.Context().run(called, loop, way, lambda: COLOUR.set("set"))
    turns_of(loop, 3)
    assert handle._context[COLOUR] == "set"
    assert handle._context is handle._context


def test_a_weak_reference_to_the_context_of_a_callback_is_to_its_own(loop: Any) -> None:
    keeper, references = Keeper(), []

    def first() -> None:
        references.append(weakref.ref(keeper.handle._context))
        COLOUR.set("first")

    keeper.handle = loop.call_soon(first)
    turns_of(loop, 1)
    assert references[0]()[COLOUR] == "first"
    keeper.handle = None
    loop.call_soon(COLOUR.set, "second")
    turns_of(loop, 1)
    gc.collect()
    assert references[0]() is None


def test_a_reader_runs_again_in_what_it_left(loop: Any) -> None:
    left, right = socket.socketpair()
    seen: list[object] = []

    def told() -> None:
        left.recv(1)
        seen.append(COLOUR.get(0))
        COLOUR.set(len(seen))

    with left, right:
        contextvars.Context().run(loop.add_reader, left, told)
        for ran in range(1, 4):
            right.send(b"x")
            while len(seen) < ran:
                turns_of(loop, 1)
        loop.remove_reader(left)
    assert seen == [0, 1, 2]


def test_a_callback_that_runs_the_loop_of_another_thread_keeps_its_context(
    new_loop: Callable[[], Any],
) -> None:
    """Contexts are lent one inside the other."""
    loop, seen = new_loop(), []

    def outer() -> None:
        COLOUR.set("outer")
        thread = threading.Thread(target=run_another)
        thread.start()
        thread.join()
        handle = inner_loop.call_soon(inner)
        handle._run()  # in the middle of this one
        seen.append(COLOUR.get())

    def inner() -> None:
        seen.append(COLOUR.get(None))
        COLOUR.set("inner")

    def run_another() -> None:
        inner_loop.call_soon(inner)
        turns_of(inner_loop, 1)

    inner_loop = new_loop()
    loop.call_soon(outer)
    turns_of(loop, 1)
    assert seen == [None, "outer", "outer"]


@pytest.mark.parametrize("raises", [ValueError, KeyboardInterrupt])
def test_a_callback_that_fails_leaves_its_context(loop: Any, raises: type[BaseException]) -> None:
    seen: list[object] = []
    loop.set_exception_handler(lambda loop, context: seen.append(context["handle"]._context[COLOUR]))

    def fails() -> None:
        COLOUR.set("failed")
        raise raises

    loop.call_soon(fails)
    try:
        turns_of(loop, 1)
    except KeyboardInterrupt:
        seen.append("failed")
    contextvars.Context().run(loop.call_soon, lambda: seen.append(COLOUR.get(None)))
    turns_of(loop, 2)
    assert seen == ["failed", None]


def test_a_handle_that_has_run_can_be_run_by_hand(loop: Any, engine: str) -> None:
    """Ours has let go of what it called; asyncio's calls it again, until it was cancelled."""
    ran: list[int] = []
    handle = loop.call_soon(ran.append, 1)
    turns_of(loop, 1)
    handle._run()
    handle.cancel()
    handle._run()
    assert ran == ([1, 1] if engine == "asyncio" else [1])


@pytest.mark.parametrize("way", WAYS_TO_CALL)
def test_each_of_many_callbacks_has_the_context_of_its_call(loop: Any, way: str) -> None:
    seen: list[int] = []

    def look() -> None:
        seen.append(COLOUR.get())
        COLOUR.set(-1)  # in a copy of its own

    def call() -> None:
        for number in range(MANY):
            COLOUR.set(number)
            called(loop, way, look)

    contextvars.copy_context().run(call)
    while len(seen) < MANY:
        turns_of(loop, 1)
    assert seen == list(range(MANY))


@pytest.mark.parametrize("timers", [False, True])
def test_objects_in_a_callbacks_context_are_collected_with_the_loop(
    new_loop: Callable[[], Any], engine: str, timers: bool
) -> None:
    class Value: ...

    if engine == "asyncio" and not getattr(sys, "_is_gil_enabled", lambda: True)():
        pytest.skip("the collector takes its sockets first, and its finaliser fails")
    loop = asyncio.new_event_loop() if engine == "asyncio" else uringloop.new_event_loop()
    value: Any = Value()
    value.loop, gone = loop, weakref.ref(value)
    contexts = contextvars.copy_context()
    contexts.run(COLOUR.set, value)
    for _ in range(MANY):
        contexts.run(*((loop.call_later, 3600) if timers else (loop.call_soon,)), id, 1)
    del contexts, value, loop
    with pytest.warns(ResourceWarning, match="unclosed event loop") as caught:
        gc.collect()
    caught.clear()
    gc.collect()
    assert gone() is None
