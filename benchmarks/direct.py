"""Reading past the page cache, by 32 tasks, while another task ticks; fio does the same beside it.

On uringloop with FixedBuffers, on any other loop with as many threads. The queue depth is the device's own count
(`time in queue` of /sys/dev/block, over the time it took): how many requests it had on average. A process that
only sleeps and looks at the clock shows how late a tick is because of all else that the machine does.
"""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from benchmarks.row import Skipped

TASKS = 32
FILE_BYTES = 256 << 20
TICK = 0.001

BARE = f"""
import sys, time
late, end = [], time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    due = time.monotonic() + {TICK}
    time.sleep({TICK})
    late.append(time.monotonic() - due)
print(max(late), sum(tick > 0.005 for tick in late))
"""

ReadOne = Callable[[], Awaitable[object]]


@contextmanager
def file_on_a_disk() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        with open(path, "wb") as file:
            for _ in range(FILE_BYTES >> 20):
                file.write(os.urandom(1 << 20))
            os.fsync(file.fileno())
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
        except OSError as error:
            raise Skipped(f"O_DIRECT in {folder}: {error.strerror}") from None
        yield path


def time_in_queue(path: str) -> float | None:
    """Seconds that requests have spent in the queue of the device the file is on; None where it has none."""
    device = os.stat(path).st_dev
    try:
        fields = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read_text().split()
    except OSError:
        return None
    return int(fields[10]) / 1000


def fio(path: str, block: int, seconds: float) -> dict[str, float]:
    """What fio reads of the same file with io_uring and as many requests at a time."""
    if shutil.which("fio") is None:
        return {}
    before, start = time_in_queue(path), time.perf_counter()
    command = [
        "fio", "--name=direct", f"--filename={path}", "--rw=randread", f"--bs={block}", "--direct=1",
        "--ioengine=io_uring", f"--iodepth={TASKS}", f"--runtime={seconds}", "--time_based", "--output-format=json",
    ]  # fmt: skip
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60 + seconds)
    took = json.loads(ended.stdout)["jobs"][0]["read"]
    found = {"fio": float(took["iops"])}
    after = time_in_queue(path)
    if before is not None and after is not None:
        # fio starts and ends outside of what it measures: only its reading is in the queue.
        reading = min(took["runtime"] / 1000, time.perf_counter() - start)
        found["fio_depth"] = (after - before) / reading
    return found


async def ticking(late: list[float]) -> None:
    """By how much each tick is late."""
    clock = asyncio.get_running_loop().time
    while True:
        due = clock() + TICK
        await asyncio.sleep(TICK)
        late.append(clock() - due)


async def reading(read_one: ReadOne, path: str, seconds: float) -> dict[str, float]:
    late: list[float] = []
    counts = [0] * TASKS
    end = time.perf_counter() + seconds

    async def reader(i: int) -> None:
        while time.perf_counter() < end:
            await read_one()
            counts[i] += 1

    command = [sys.executable, "-c", BARE, str(seconds)]
    bare = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    ticker = asyncio.ensure_future(ticking(late))
    before, start = time_in_queue(path), time.perf_counter()
    await asyncio.gather(*(reader(i) for i in range(TASKS)))
    took, after = time.perf_counter() - start, time_in_queue(path)
    ticker.cancel()
    found = {"rate": sum(counts) / took, "late": max(late) * 1000, "ticks": float(len(late))}
    found["often_late"] = float(sum(tick > 0.005 for tick in late))
    if before is not None and after is not None:
        found["depth"] = (after - before) / took
    latest, often = bare.communicate()[0].split()
    return {**found, "bare_late": float(latest) * 1000, "bare_often_late": float(often)}


async def on_our_files(path: str, block: int, seconds: float) -> dict[str, float]:
    from uringloop import open_file
    from uringloop.files import FixedBuffers

    places = FILE_BYTES // block
    with FixedBuffers(TASKS, block) as buffers:
        async with open_file(path, "rb", 0, direct=True) as file:

            async def read_one() -> None:
                with await buffers.lend() as view:
                    await file.pread(view, random.randrange(places) * block)

            return await reading(read_one, path, seconds)


async def in_threads(path: str, block: int, seconds: float) -> dict[str, float]:
    loop, places = asyncio.get_running_loop(), FILE_BYTES // block
    buffers = [mmap.mmap(-1, block) for _ in range(TASKS)]
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        with ThreadPoolExecutor(TASKS) as threads:

            async def read_one() -> None:
                buffer = buffers.pop()
                await loop.run_in_executor(threads, os.preadv, fd, [buffer], random.randrange(places) * block)
                buffers.append(buffer)

            return await reading(read_one, path, seconds)
    finally:
        os.close(fd)


def direct(loop: asyncio.AbstractEventLoop, seconds: float, block: int = 4096) -> dict[str, float]:
    """Reads a second, the queue depth they keep the device at, and by how many ms a tick was late at worst."""
    ours = type(loop).__module__.startswith("uringloop")
    with file_on_a_disk() as path:
        read = on_our_files if ours else in_threads
        found = loop.run_until_complete(read(path, block, seconds))
        return {**found, **(fio(path, block, seconds) if ours else {})}
