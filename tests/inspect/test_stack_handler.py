from __future__ import annotations

import faulthandler
import os
import signal
import threading

import pytest

from uringloop.inspect import stack_handler
from uringloop.inspect.stack_handler import StackHandler, parse, read_stacks

WRITTEN = """Thread 0x00007f0000000002 (most recent call first):
  File "/srv/app.py", line 7 in work
  File "{library}/threading.py", line 982 in run

Current thread 0x00007f0000000001 (most recent call first):
  File "{library}/threading.py", line 320 in wait
  File "/srv/app.py", line 3 in <module>
"""


def test_what_faulthandler_wrote_is_parsed() -> None:
    library = os.path.dirname(os.__file__)
    work, main = parse(WRITTEN.format(library=library))
    assert (work["ident"], work["state"], work["at"]["line"]) == (0x7F0000000002, "suspect", 7)
    assert [place["function"] for place in work["stack"]] == ["run", "work"]
    assert (main["state"], main["at"]["line"]) == ("waiting", 3)


def test_the_stacks_of_a_process_are_read_and_the_handler_is_removed() -> None:
    handler = StackHandler(threading.get_native_id())
    try:
        found = read_stacks(os.getpid(), 60)
        assert found is not None
        assert any(
            place["function"].startswith("test_the_stacks") for thread in found for place in thread["stack"]
        )
    finally:
        handler.close()
    assert read_stacks(os.getpid(), 60) is None


def test_a_signal_that_the_program_uses_is_left_alone() -> None:
    before = signal.signal(signal.SIGRTMAX, lambda *_: None)
    try:
        handler = StackHandler(threading.get_native_id())
        assert handler.signal < signal.SIGRTMAX
        handler.close()
    finally:
        signal.signal(signal.SIGRTMAX, before)


def test_a_process_that_no_longer_handles_the_signal_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = StackHandler(threading.get_native_id())
    try:
        faulthandler.unregister(handler.signal)
        monkeypatch.setattr(
            stack_handler, "_send", lambda *_: pytest.fail("the signal would end the process")
        )
        assert read_stacks(os.getpid(), 60) is None
    finally:
        handler.close()
