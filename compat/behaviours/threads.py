"""Several loops in several threads, and loops around fork."""

from __future__ import annotations

import asyncio
import os
import threading
import warnings

from compat.behaviours import check
from compat.behaviours.callbacks import open_echo
from compat.behaviours.helpers import new_loop

THREADS = "4 loops in 4 threads"
FORK = "fork: a new loop in the child, the parent's goes on"


async def _talk(message: bytes) -> bytes:
    reader, writer = await open_echo()
    writer.write(message)
    answer = await reader.readexactly(len(message))
    writer.close()
    await writer.wait_closed()
    return answer


@check(THREADS)
def four_loops_in_four_threads() -> None:
    answers: dict[int, bytes] = {}

    def work(number: int) -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            for _ in range(20):
                answers[number] = runner.run(_talk(b"%d" % number * 5000))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: b"%d" % number * 5000 for number in range(4)}


@check(THREADS)
def loop_made_here_runs_there_and_here_again() -> None:
    loop = new_loop()
    answers: list[bytes] = []

    def elsewhere() -> None:
        answers.append(loop.run_until_complete(_talk(b"there")))

    answers.append(loop.run_until_complete(_talk(b"here")))
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    answers.append(loop.run_until_complete(_talk(b"again")))
    loop.close()
    assert answers == [b"here", b"there", b"again"]


@check(FORK, alone=True)
def forked_child_runs_a_new_loop() -> None:
    loop = new_loop()
    assert loop.run_until_complete(_talk(b"before")) == b"before"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        answer = b""
        try:
            with asyncio.Runner(loop_factory=new_loop) as runner:
                answer = runner.run(_talk(b"child"))
        finally:
            os._exit(0 if answer == b"child" else 1)
    assert loop.run_until_complete(_talk(b"meanwhile")) == b"meanwhile"
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert loop.run_until_complete(_talk(b"after")) == b"after"
    loop.close()


@check(FORK, alone=True)
async def child_forked_inside_a_running_loop_has_no_running_loop() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            with asyncio.Runner(loop_factory=new_loop) as runner:
                code = 0 if runner.run(_talk(b"child")) == b"child" else 2
        finally:
            os._exit(code)
    assert await _talk(b"parent") == b"parent"
    status = await asyncio.get_running_loop().run_in_executor(None, os.waitpid, child, 0)
    assert os.waitstatus_to_exitcode(status[1]) == 0
