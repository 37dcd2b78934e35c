"""add_signal_handler and remove_signal_handler."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from typing import Any

from compat.behaviours import check
from compat.behaviours.helpers import new_loop, raises, soon, until

SIGNALS = "add/remove_signal_handler"


@check(SIGNALS)
async def handler_runs_in_the_loop() -> None:
    loop = asyncio.get_running_loop()
    seen: list[Any] = []
    loop.add_signal_handler(
        signal.SIGUSR1, lambda *args: seen.append((args, asyncio.get_running_loop())), 1, 2
    )
    # right after the call: it has to be installed by now
    os.kill(os.getpid(), signal.SIGUSR1)
    await until(lambda: seen)
    assert seen == [((1, 2), loop)]
    loop.add_signal_handler(signal.SIGUSR1, seen.append, "second")
    os.kill(os.getpid(), signal.SIGUSR1)
    await until(lambda: len(seen) == 2)
    assert seen[1] == "second"
    assert loop.remove_signal_handler(signal.SIGUSR1) is True
    assert loop.remove_signal_handler(signal.SIGUSR1) is False
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


@check(SIGNALS)
async def signal_wakes_a_sleeping_loop() -> None:
    loop = asyncio.get_running_loop()
    woken = loop.create_future()
    loop.add_signal_handler(signal.SIGUSR2, woken.set_result, None)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR2))
    timer.start()
    await soon(woken)
    loop.remove_signal_handler(signal.SIGUSR2)


@check(SIGNALS, alone=True)
async def handler_of_sigint_replaces_the_interrupt() -> None:
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    seen: list[int] = []
    loop.add_signal_handler(signal.SIGINT, seen.append, 1)
    signal.raise_signal(signal.SIGINT)
    await until(lambda: seen == [1])
    loop.remove_signal_handler(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@check(SIGNALS)
async def impossible_handlers_are_refused() -> None:
    loop: Any = asyncio.get_running_loop()

    async def coroutine() -> None:
        pass

    raises(TypeError, loop.add_signal_handler, signal.SIGUSR1, coroutine)
    raises(TypeError, loop.add_signal_handler, "SIGUSR1", int)
    raises(ValueError, loop.add_signal_handler, 1000, int)
    raises(RuntimeError, loop.add_signal_handler, signal.SIGKILL, int)
    raises(ValueError, loop.remove_signal_handler, 1000)


@check(SIGNALS)
def handlers_belong_to_the_main_thread() -> None:
    caught: list[BaseException] = []

    def elsewhere() -> None:
        loop = new_loop()
        try:
            loop.add_signal_handler(signal.SIGUSR1, int)
        except (RuntimeError, ValueError) as error:
            caught.append(error)
        loop.close()

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(caught) == 1, caught


@check(SIGNALS)
def signal_between_two_runs_is_kept() -> None:
    loop = new_loop()
    seen: list[int] = []
    loop.add_signal_handler(signal.SIGUSR1, seen.append, 1)
    loop.run_until_complete(asyncio.sleep(0))
    signal.raise_signal(signal.SIGUSR1)
    loop.run_until_complete(until(lambda: seen == [1]))
    loop.close()
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


@check(SIGNALS)
def close_takes_the_wakeup_descriptor_back() -> None:
    loop = new_loop()
    loop.add_signal_handler(signal.SIGUSR1, int)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert signal.set_wakeup_fd(-1) == -1
