"""add_reader and add_writer: level-triggered, as asyncio's are, on anything that can be waited for."""

from __future__ import annotations

import errno
import gc
import os
import socket
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.contract

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    left, right = socket.socketpair()
    left.setblocking(False)
    right.setblocking(False)
    with left, right:
        yield left, right


def turns(loop: Any, count: int = 3) -> None:
    """So many turns, none of which sleeps: enough for what is ready to be told."""
    for _ in range(count):
        loop.call_soon(loop.stop)
        loop.run_forever()


def quiet_turns(loop: Any, engine: str) -> None:
    """Enough turns for anything that is going to happen, on an engine that may be late too."""
    turns(loop, 100 if engine == "fake" else 30)


def test_a_reader_is_called_again_while_there_is_data(loop: Any, pair: Pair) -> None:
    left, right = pair
    seen: list[bytes] = []

    def read_one() -> None:
        seen.append(left.recv(1))
        if len(seen) == 3:
            loop.stop()

    right.send(b"abc")
    assert loop.add_reader(left, read_one) is None
    loop.run_forever()
    assert seen == [b"a", b"b", b"c"]
    assert loop.remove_reader(left) is True


def test_a_reader_is_called_once_a_turn(loop: Any, pair: Pair) -> None:
    left, right = pair
    told = 0

    def tell() -> None:
        nonlocal told
        told += 1
        if told == 5:
            loop.stop()

    right.send(b"never read")
    loop.add_reader(left, tell)
    loop.run_forever()
    assert told == 5
    loop.remove_reader(left)


def test_a_reader_that_has_read_all_data_is_called_for_later_data(loop: Any, pair: Pair) -> None:
    left, right = pair
    seen: list[bytes] = []

    def read() -> None:
        seen.append(left.recv(100))
        if len(seen) < 4:
            loop.call_later(0.001, right.send, b"%d" % len(seen))
        else:
            loop.stop()

    right.send(b"0")
    loop.add_reader(left, read)
    loop.run_forever()
    assert seen == [b"0", b"1", b"2", b"3"]
    loop.remove_reader(left)


def test_a_writer_is_called_while_there_is_room(loop: Any, pair: Pair) -> None:
    left, right = pair
    sent = 0

    def fill() -> None:
        nonlocal sent
        try:
            while True:
                sent += left.send(b"x" * 65536)
        except BlockingIOError:
            loop.remove_writer(left)
            loop.stop()

    loop.add_writer(left, fill)
    loop.run_forever()
    assert sent

    received = 0
    told_again: list[bool] = []
    while received < sent:
        received += len(right.recv(1 << 20))
    loop.add_writer(left, lambda: (told_again.append(True), loop.stop()))
    loop.run_forever()
    assert told_again == [True]
    loop.remove_writer(left)


def test_reader_and_writer_of_one_descriptor_are_both_called(loop: Any, pair: Pair) -> None:
    left, right = pair
    missing = {"reader", "writer"}

    def tell(which: str) -> None:
        missing.discard(which)
        if not missing:
            loop.stop()

    right.send(b"x")
    loop.add_reader(left, tell, "reader")
    loop.add_writer(left.fileno(), tell, "writer")
    loop.run_forever()
    assert loop.remove_reader(left.fileno()) is True
    assert loop.remove_writer(left) is True


def test_removing_the_writer_leaves_the_reader(loop: Any, pair: Pair, engine: str) -> None:
    left, right = pair
    told: list[str] = []
    loop.add_reader(left, told.append, "reader")
    loop.add_writer(left, told.append, "writer")
    assert loop.remove_writer(left)
    quiet_turns(loop, engine)
    assert told == []
    right.send(b"x")
    loop.add_reader(left, lambda: (told.append("reader"), loop.stop()))
    loop.run_forever()
    assert told == ["reader"]
    loop.remove_reader(left)


def test_remove_reader_and_remove_writer_return_whether_one_was_removed(loop: Any, pair: Pair) -> None:
    left, _ = pair
    assert loop.remove_reader(left) is False
    assert loop.remove_writer(left) is False
    loop.add_reader(left, print)
    assert loop.remove_writer(left) is False
    assert loop.remove_reader(left) is True
    assert loop.remove_reader(left) is False


def test_a_removed_reader_is_not_called_even_if_data_is_there(loop: Any, pair: Pair, engine: str) -> None:
    left, right = pair
    told: list[int] = []
    loop.add_reader(left, told.append, 1)
    turns(loop)
    right.send(b"x")
    loop.remove_reader(left)
    quiet_turns(loop, engine)
    assert told == []


def test_a_reader_that_another_reader_removes_in_the_same_turn_is_not_called(loop: Any, engine: str) -> None:
    pairs = [socket.socketpair() for _ in range(2)]
    told: list[int] = []

    def tell(which: int) -> None:
        told.append(which)
        for left, _ in pairs:
            loop.remove_reader(left)

    for i, (left, right) in enumerate(pairs):
        right.send(b"x")
        loop.add_reader(left, tell, i)
    quiet_turns(loop, engine)
    assert len(told) == 1
    for left, right in pairs:
        left.close()
        right.close()


def test_a_descriptor_whose_reader_was_replaced_calls_the_new_one_only(
    loop: Any, pair: Pair, engine: str
) -> None:
    left, right = pair
    told: list[str] = []
    loop.add_reader(left, told.append, "old")
    turns(loop)
    loop.add_reader(left, lambda: (told.append("new"), loop.remove_reader(left)))
    right.send(b"x")
    quiet_turns(loop, engine)
    assert told == ["new"]


def test_a_reader_can_replace_itself_in_its_callback(loop: Any, pair: Pair) -> None:
    left, right = pair
    told: list[str] = []

    def first() -> None:
        told.append("first")
        loop.add_reader(left, second)

    def second() -> None:
        told.append("second")
        loop.remove_reader(left)
        loop.stop()

    right.send(b"x")
    loop.add_reader(left, first)
    loop.run_forever()
    assert told == ["first", "second"]


def test_replacing_a_reader_whose_finaliser_reenters_is_harmless(loop: Any, pair: Pair) -> None:
    left, _ = pair

    class Reentrant:
        def __call__(self) -> None: ...

        def __del__(self) -> None:
            loop.remove_reader(left)

    loop.add_reader(left, Reentrant())
    loop.add_reader(left, print)
    loop.remove_reader(left)
    turns(loop)


def test_remove_reader_drops_the_callback_and_its_arguments(loop: Any, pair: Pair, engine: str) -> None:
    left, _ = pair

    class Held: ...

    held = Held()
    gone = weakref.ref(held)
    loop.add_reader(left, print, held)
    turns(loop)
    loop.remove_reader(left)
    del held
    quiet_turns(loop, engine)
    gc.collect()
    assert gone() is None


def test_an_end_of_file_calls_the_reader(loop: Any, pair: Pair) -> None:
    left, right = pair
    seen: list[bytes] = []
    loop.add_reader(left, lambda: (seen.append(left.recv(1)), loop.stop()))
    loop.call_soon(right.close)
    loop.run_forever()
    assert seen == [b""]
    loop.remove_reader(left)


def test_a_closed_descriptor_is_refused(loop: Any) -> None:
    left, right = socket.socketpair()
    number = left.detach()
    os.close(number)
    right.close()
    with pytest.raises(OSError) as caught:
        loop.add_reader(number, print)
    assert caught.value.errno == errno.EBADF
    assert loop.remove_reader(number) is False


@pytest.mark.parametrize("wrong", [-1, None, "0", object(), 1.5])
def test_objects_without_a_descriptor_are_refused(loop: Any, wrong: Any) -> None:
    for method in (loop.add_reader, loop.add_writer):
        with pytest.raises(ValueError):
            method(wrong, print)
    for method in (loop.remove_reader, loop.remove_writer):
        with pytest.raises(ValueError):
            method(wrong)


def test_a_reader_can_be_removed_after_its_descriptor_was_closed(loop: Any, engine: str) -> None:
    left, right = socket.socketpair()
    told: list[int] = []
    number = left.fileno()
    loop.add_reader(left, told.append, 1)
    turns(loop)
    left.close()
    assert loop.remove_reader(number) is True
    right.close()
    quiet_turns(loop, engine)
    assert told == []


def test_a_descriptor_closed_and_reused_in_one_turn_is_watched_anew(loop: Any) -> None:
    left, right = socket.socketpair()
    loop.add_reader(left, print)
    turns(loop)
    number = left.fileno()
    loop.remove_reader(left)
    left.close()
    again, peer = socket.socketpair()
    assert number in (again.fileno(), peer.fileno())
    if peer.fileno() == number:
        again, peer = peer, again
    loop.add_reader(again, loop.stop)
    loop.call_later(0.001, peer.send, b"x")
    loop.run_forever()
    loop.remove_reader(again)
    for each in (right, again, peer):
        each.close()


def test_a_descriptor_closed_without_removing_and_reused_is_watched_anew(loop: Any) -> None:
    left, right = socket.socketpair()
    loop.add_reader(left, print)
    turns(loop)
    number = left.fileno()
    left.close()
    again, peer = socket.socketpair()
    if peer.fileno() == number:
        again, peer = peer, again
    assert again.fileno() == number
    loop.remove_reader(number)
    loop.add_reader(again, loop.stop)
    loop.call_later(0.001, peer.send, b"x")
    loop.run_forever()
    loop.remove_reader(again)
    for each in (right, again, peer):
        each.close()


@pytest.mark.engines("uring", "epoll")
def test_a_duplicate_that_stays_open_does_not_make_the_loop_spin(loop: Any) -> None:
    left, right = socket.socketpair()
    duplicate = left.dup()  # as a forked child has
    loop.add_reader(left, print)
    turns(loop)
    loop.remove_reader(left)
    left.close()
    right.send(b"for nobody")
    turns(loop)
    before = loop._counts()["turns"]
    loop.call_later(0.05, loop.stop)
    loop.run_forever()
    assert loop._counts()["turns"] - before < 20
    duplicate.close()
    right.close()


def test_add_reader_and_add_writer_keep_the_flags_of_the_descriptor(loop: Any) -> None:
    left, right = socket.socketpair()
    loop.add_reader(left, print)
    loop.add_writer(right, loop.stop)
    loop.run_forever()
    assert os.get_blocking(left.fileno()) and os.get_blocking(right.fileno())
    loop.remove_reader(left)
    loop.remove_writer(right)
    left.close()
    right.close()


def test_an_exception_of_a_reader_is_reported_and_the_reader_called_again(loop: Any, pair: Pair) -> None:
    left, right = pair
    reports: list[dict[str, Any]] = []
    loop.set_exception_handler(
        lambda loop, context: (reports.append(context), len(reports) > 1 and loop.stop())
    )
    right.send(b"x")
    loop.add_reader(left, lambda: 1 / 0)
    loop.run_forever()
    assert [type(report["exception"]) for report in reports] == [ZeroDivisionError] * 2
    loop.remove_reader(left)


@pytest.mark.engines("uring", "epoll", "fake")
def test_keyboard_interrupt_in_a_reader_leaves_the_loop(loop: Any, pair: Pair) -> None:
    left, right = pair

    def interrupt() -> None:
        raise KeyboardInterrupt

    right.send(b"x")
    loop.add_reader(left, interrupt)
    with pytest.raises(KeyboardInterrupt):
        loop.run_forever()
    # It is still watched.
    with pytest.raises(KeyboardInterrupt):
        loop.run_forever()
    loop.remove_reader(left)


def test_readers_of_a_hundred_descriptors_are_all_called(loop: Any) -> None:
    pairs = [socket.socketpair() for _ in range(100)]
    missing = set(range(100))

    def tell(which: int) -> None:
        loop.remove_reader(pairs[which][0])
        missing.discard(which)
        if not missing:
            loop.stop()

    for i, (left, right) in enumerate(pairs):
        loop.add_reader(left, tell, i)
        right.send(b"x")
    loop.run_forever()
    for left, right in pairs:
        left.close()
        right.close()


def test_a_loop_with_readers_and_writers_can_be_closed(new_loop: Callable[..., Any], pair: Pair) -> None:
    loop = new_loop()
    left, right = pair
    loop.add_reader(left, print, "never")
    loop.add_writer(right, print, "never")
    loop.close()


def test_readers_are_still_called_after_the_loop_changes_threads(loop: Any, pair: Pair) -> None:
    left, right = pair
    told: list[str] = []
    loop.add_reader(left, lambda: (told.append(threading.current_thread().name), left.recv(1), loop.stop()))
    turns(loop)
    for i in range(3):
        right.send(b"x")
        thread = threading.Thread(target=loop.run_forever, name=f"thread {i}")
        thread.start()
        thread.join()
    right.send(b"x")
    loop.run_forever()
    assert told == ["thread 0", "thread 1", "thread 2", threading.current_thread().name]
    loop.remove_reader(left)
