"""Waiting for a child process, by whatever means the kernel offers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from uringloop._core.awaitables.child import ChildOp


def wait_for(loop: Any, process: subprocess.Popen[bytes], exited: Callable[[], bool]) -> None:
    ChildOp(loop, process.pid, exited).start()
    loop.call_later(20, loop.stop)
    loop.run_forever()


def test_the_status_is_left_to_be_read(loop: Any) -> None:
    process = subprocess.Popen([sys.executable, "-Sc", "raise SystemExit(5)"])
    told = []

    def exited() -> bool:
        told.append(os.waitpid(process.pid, os.WNOHANG))
        loop.stop()
        return True

    wait_for(loop, process, exited)
    process.returncode = os.waitstatus_to_exitcode(told[0][1])
    assert told[0][0] == process.pid and process.returncode == 5


def test_a_process_that_the_callback_rejects_is_waited_for_again(loop: Any) -> None:
    process = subprocess.Popen([sys.executable, "-Sc", ""])
    told = []

    def exited() -> bool:
        told.append(process.pid)
        if len(told) == 2:
            loop.stop()
        return len(told) == 2

    wait_for(loop, process, exited)
    assert len(told) == 2 and process.wait() == 0


def test_an_exception_is_reported_once(loop: Any) -> None:
    process = subprocess.Popen([sys.executable, "-Sc", ""])
    contexts = []

    def exited() -> bool:
        loop.stop()
        raise ZeroDivisionError

    loop.set_exception_handler(lambda loop, context: contexts.append(context["exception"]))
    wait_for(loop, process, exited)
    assert [type(error) for error in contexts] == [ZeroDivisionError] and process.wait() == 0


def test_a_loop_may_be_closed_before_the_process_ends(new_loop: Callable[..., Any]) -> None:
    loop = new_loop()
    process = subprocess.Popen(["sleep", "100"])
    operation = ChildOp(loop, process.pid, lambda: True)
    operation.start()
    loop.run_until_complete(_nothing())
    assert operation.in_kernel
    loop.close()
    assert not operation.in_kernel
    process.kill()
    assert process.wait() == -9


@pytest.mark.engines("uring")
def test_a_kernel_without_waitid_polls_the_pidfd(program: Callable[..., Any], engine: str) -> None:
    code = """
import asyncio, uringloop
async def main():
    process = await asyncio.create_subprocess_shell("exit 4", stdin=asyncio.subprocess.PIPE)
    print(await process.wait())
uringloop.run(main())
"""
    assert program(code, URINGLOOP_DISABLE="waitid").stdout == "4\n"


async def _nothing() -> None:
    pass


def test_an_interrupt_in_the_callback_repeats_it(loop: Any) -> None:
    """What leaves the loop: it is asked again when the loop runs again."""
    process = subprocess.Popen([sys.executable, "-Sc", ""])
    told = []

    def exited() -> bool:
        told.append(process.pid)
        if len(told) == 1:
            raise KeyboardInterrupt
        loop.stop()
        return True

    with pytest.raises(KeyboardInterrupt):
        wait_for(loop, process, exited)
    loop.run_forever()
    assert len(told) == 2 and process.wait() == 0
