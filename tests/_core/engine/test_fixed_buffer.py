"""Pinned memory when loops close, move to other threads or are forked, and how much of it there may be."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import uringloop
from uringloop.files import FixedBuffers

Program = Callable[..., Any]
Feature = Callable[[str], bool]

CONTENTS = b"".join(b"%07d\n" % i for i in range(40_000))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "f"
    found.write_bytes(CONTENTS)
    return found


def test_fixed_buffers_outlive_their_loop(new_loop: Any, path: Path) -> None:
    first, second = new_loop(), new_loop()

    async def make() -> tuple[FixedBuffers, memoryview]:
        buffers = FixedBuffers(2, 4096)
        view = await buffers.lend()
        async with uringloop.open_file(path, "rb", direct=True) as file:
            await file.pread(view, 4096)
        return buffers, view

    async def use(buffers: FixedBuffers) -> None:
        with await buffers.lend() as view:
            async with uringloop.open_file(path, "rb", direct=True) as file:
                assert await file.pread(view, 8192) == 4096
            assert bytes(view) == CONTENTS[8192:12288]

    buffers, view = first.run_until_complete(make())
    transfers = buffers.statistics()["transfers"]
    second.run_until_complete(use(buffers))  # on another ring they are memory like any other
    assert buffers.statistics()["transfers"] == transfers
    first.close()
    assert buffers.statistics()["registered"] is False
    assert bytes(view) == CONTENTS[4096:8192]
    second.run_until_complete(use(buffers))
    view.release()
    buffers.close()


def test_a_loop_that_closes_waits_for_transfers(new_loop: Any, path: Path) -> None:
    loop, other = new_loop(), new_loop()

    async def main() -> tuple[FixedBuffers, Any]:
        buffers = FixedBuffers(8, 65536)
        file = await uringloop.open_file(path, "rb", direct=True)
        for i in range(8):
            asyncio.ensure_future(use(buffers, file, i * 32768))
        for _ in range(3):
            await asyncio.sleep(0)
        return buffers, file

    async def use(buffers: FixedBuffers, file: Any, offset: int) -> None:
        with await buffers.lend() as view:
            await file.pread(view, offset)

    buffers, file = loop.run_until_complete(main())
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    gc.collect()
    assert buffers.statistics()["lent"] == 0
    other.run_until_complete(file.close())  # nothing of it is in a kernel


def test_fixed_buffers_move_with_their_loop_to_another_thread(
    loop: Any, path: Path, feature: Feature
) -> None:
    async def make() -> FixedBuffers:
        return FixedBuffers(2, 4096)

    async def use(buffers: FixedBuffers) -> None:
        async with uringloop.open_file(path, "rb", direct=True) as file:
            with await buffers.lend() as view:
                assert await file.pread(view, 8192) == 4096
                assert bytes(view) == CONTENTS[8192:12288]

    buffers = loop.run_until_complete(make())
    gone = loop.run_until_complete(make())
    for turn in range(3):
        thread = threading.Thread(target=loop.run_until_complete, args=(use(buffers),))
        thread.start()
        thread.join()
        gone = loop.run_until_complete(make())
        loop.run_until_complete(use(buffers))
        found = buffers.statistics()
        assert found["registered"] == feature("fixed_buffers")
        assert found["transfers"] == 2 * (turn + 1) * feature("fixed_buffers")
    gone.close()


@pytest.mark.engines("uring")
def test_buffers_dropped_by_another_thread_are_unpinned(loop: Any) -> None:
    async def main() -> None:
        for _ in range(3):
            made = [FixedBuffers(1, 1) for _ in range(600)]  # of 1024 that a ring can have
            thread = threading.Thread(target=made.clear)
            thread.start()
            await asyncio.get_running_loop().run_in_executor(None, thread.join)

    loop.run_until_complete(main())


def test_a_ring_pins_no_more_than_its_table_holds(loop: Any, feature: Feature) -> None:
    async def main() -> None:
        made = [FixedBuffers(1, 1) for _ in range(1024)]
        if feature("fixed_buffers"):
            with pytest.raises(OSError, match="no more than 1024 FixedBuffers on one event loop"):
                FixedBuffers(1, 1)
            made.pop()
        FixedBuffers(1, 1)

    loop.run_until_complete(main())


USE = """
import asyncio, os, sys, uringloop
from uringloop.files import FixedBuffers

path = sys.argv[1]
loop = uringloop.new_event_loop()

async def make():
    return FixedBuffers(2, 65536)

async def use(buffers):
    async with uringloop.open_file(path, "rb", direct=True) as file:
        with await buffers.lend() as view:
            assert await file.pread(view, 65536) == 65536
            with open(path, "rb") as other:
                assert bytes(view) == other.read()[65536:131072]
    return buffers.statistics()["registered"]
"""


# Root may pin what it likes, by a capability that can be given up.
UNPRIVILEGED = """
import ctypes
libc, header, capabilities = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert libc.capget(header, capabilities) == 0
capabilities[0] &= ~(1 << 14)  # CAP_IPC_LOCK
assert libc.capset(header, capabilities) == 0
"""


@pytest.mark.engines("uring")
def test_memory_beyond_the_limit_raises_an_error_with_the_reason(
    engine: str, program: Program, path: Path, feature: Feature
) -> None:
    if not feature("fixed_buffers"):
        pytest.skip("nothing is pinned")
    code = (
        UNPRIVILEGED + "import resource\nresource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))\n" + USE
    )
    code += "try: loop.run_until_complete(make())\nexcept OSError as error: print(error)\n"
    said = program(code, str(path)).stdout
    assert said.startswith("[Errno 12] pinning 131072 bytes: Cannot allocate memory (RLIMIT_MEMLOCK,")
    assert "is 65536 bytes" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only what was privileged can pin too much first")
@pytest.mark.engines("uring")
def test_memory_that_a_new_ring_cannot_pin_is_used_unpinned(
    engine: str, program: Program, path: Path, feature: Feature
) -> None:
    if not feature("fixed_buffers") or not feature("defer_taskrun"):
        pytest.skip("nothing is pinned, or the other thread gets the same ring")
    code = (
        USE.replace("FixedBuffers(2,", "FixedBuffers(200,")
        + """
import resource, threading
buffers = loop.run_until_complete(make())
print(loop.run_until_complete(use(buffers)))
"""
        + UNPRIVILEGED
        + """
resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 22, 1 << 22))  # enough for the ring
thread = threading.Thread(target=lambda: print(loop.run_until_complete(use(buffers))))
thread.start()
thread.join()
"""
    )
    assert program(code, str(path)).stdout.split() == ["True", "False"]


def test_fixed_buffers_work_without_being_pinned(engine: str, program: Program, path: Path) -> None:
    code = USE + "print(loop.run_until_complete(use(loop.run_until_complete(make()))))\nloop.close()"
    assert program(code, str(path), URINGLOOP_DISABLE="fixed_buffers").stdout == "False\n"


def test_a_forked_child_leaves_the_parents_alone(
    engine: str, program: Program, path: Path, feature: Feature
) -> None:
    code = USE + (
        "import warnings\n"
        "warnings.simplefilter('ignore')\n"
        "buffers = loop.run_until_complete(make())\n"
        "first = loop.run_until_complete(use(buffers))\n"
        "def child(what):\n"
        "    sys.stdout.flush()\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        try:\n"
        "            what()\n"
        "            sys.stdout.flush()\n"
        "        finally:\n"
        "            os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
        "def drop():\n"
        "    global buffers\n"
        "    assert not buffers.statistics()['registered']\n"
        "    buffers = None\n"
        "    print('dropped')\n"
        "child(drop)\n"
        "child(lambda: print('child', loop.run_until_complete(use(buffers))))\n"
        "print('parent', first, loop.run_until_complete(use(buffers)))\n"
        "loop.close()\n"
    )
    pinned = feature("fixed_buffers")
    said = program(code, str(path)).stdout.splitlines()
    assert said == ["dropped", f"child {pinned}", f"parent {pinned} {pinned}"]
