"""install() and EventLoopPolicy: plain asyncio programs get our loops. Each in a process of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest

import uringloop

Program = Callable[..., Any]


def test_install_makes_asyncio_run_use_our_loop(engine: str, program: Program) -> None:
    code = """
import asyncio, threading, uringloop
uringloop.install()

async def main():
    return type(asyncio.get_running_loop()).__module__

assert asyncio.run(main()) == "uringloop.loop"
loop = asyncio.new_event_loop()
assert isinstance(loop, uringloop.EventLoop)
loop.close()
answers = []
thread = threading.Thread(target=lambda: answers.append(asyncio.run(main())))
thread.start()
thread.join()
assert answers == ["uringloop.loop"]
with asyncio.Runner() as runner:
    assert runner.run(main()) == "uringloop.loop"
"""
    assert program(code).stderr == ""


@pytest.mark.skipif(sys.version_info >= (3, 16), reason="policies left Python with 3.16")
def test_the_policy_gives_the_main_thread_a_loop_and_others_none(engine: str, program: Program) -> None:
    code = """
import asyncio, threading, warnings, uringloop
warnings.simplefilter("ignore", DeprecationWarning)
asyncio.set_event_loop_policy(uringloop.EventLoopPolicy())
policy = asyncio.get_event_loop_policy()
loop = policy.new_event_loop()
assert isinstance(loop, uringloop.EventLoop)
asyncio.set_event_loop(loop)
assert asyncio.get_event_loop() is loop

def other():
    try:
        asyncio.get_event_loop()
    except RuntimeError as error:
        print(error)

thread = threading.Thread(target=other)
thread.start()
thread.join()
loop.run_until_complete(asyncio.sleep(0))
loop.close()
asyncio.set_event_loop(None)
"""
    assert "There is no current event loop in thread" in program(code).stdout


def test_the_policy_is_asyncios_with_another_loop() -> None:
    assert uringloop.EventLoopPolicy._loop_factory is uringloop.EventLoop
    assert issubclass(uringloop.EventLoop, asyncio.AbstractEventLoop)
