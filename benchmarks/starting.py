"""What a program pays before its first turn: fresh processes that import a loop, make one, and serve one echo.

    python -m benchmarks.starting [ROUNDS]      what each loop adds to asyncio, and how often uvloop's addition that is

The rows show whole processes; this table subtracts asyncio's of the same round. Each stage contains the one before it,
so that nothing seems saved that is only done later.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

from benchmarks.candidate import CANDIDATES, CONTROL, OURS, Candidate
from benchmarks.native_build import native_program
from benchmarks.row import Failed, Metric, Row
from benchmarks.worker import child_environment

PEER = "uvloop"
METRICS = (
    Metric("cpu", "s", higher_is_better=False),
    Metric("time", "s", higher_is_better=False),
    Metric("memory", "B", higher_is_better=False),
)

IMPORT = "import asyncio, {module}\n"
LOOP = IMPORT + "loop = {module}.new_event_loop()\nloop.run_until_complete(asyncio.sleep(0))\n"
ECHO = (
    LOOP
    + """
class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
    def data_received(self, data):
        self.transport.write(data)
        self.transport.close()

class Client(asyncio.Protocol):
    def connection_made(self, transport):
        transport.write(b"hello")
    def data_received(self, data):
        assert data == b"hello"
    def connection_lost(self, error):
        self.over.set_result(error)

async def main():
    client = Client()
    client.over = loop.create_future()
    server = await loop.create_server(Echo, "127.0.0.1", 0)
    await loop.create_connection(lambda: client, *server.sockets[0].getsockname())
    await client.over
    server.close()
    await server.wait_closed()

loop.run_until_complete(main())
"""
)
STAGES = {"import": IMPORT, "loop": LOOP + "loop.close()\n", "echo": ECHO + "loop.close()\n"}
RESIDENT = (
    "for line in open('/proc/self/status'):\n"
    "    if line.startswith(('RssAnon', 'RssFile', 'RssShmem')): print(line.split()[1])\n"
)
LIVES = """
import asyncio, time, {module}
async def nothing(): pass
def live():
    loop = {module}.new_event_loop(**{options})
    loop.run_until_complete(nothing())
    loop.close()
for _ in range(20): live()
found = []
end = time.perf_counter() + {seconds}
while time.perf_counter() < end:
    begun = time.perf_counter()
    live()
    found.append(time.perf_counter() - begun)
print(sorted(found)[len(found) // 2])
"""


def start(program: str) -> dict[str, float]:
    """One fresh process that runs the program."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", program + RESIDENT], stdout=subprocess.PIPE, env=child_environment()
    )
    assert process.stdout is not None
    with process.stdout:
        said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise Failed(f"exit status {process.returncode}")
    return {
        "cpu": used.ru_utime + used.ru_stime,
        "time": time.perf_counter() - begun,
        "memory": 1024.0 * sum(map(int, said.split())),
    }


def measure_start(row: Row, candidate: Candidate, seconds: float) -> dict[str, float]:
    """The medians of as many processes as fit."""
    program = STAGES[row.arguments["stage"]].format(module=candidate.module)
    end = time.monotonic() + seconds
    found = [start(program)]
    while time.monotonic() < end:
        found.append(start(program))
    return {metric.name: statistics.median(each[metric.name] for each in found) for metric in METRICS}


def measure_lives(row: Row, candidate: Candidate, seconds: float) -> dict[str, float]:
    """A loop made, run and closed, in one process; of bare C, a ring that is set up and closed."""
    if candidate.native:
        command = [str(native_program("ring_life")), str(seconds)]
    else:
        program = LIVES.format(module=candidate.module, options=candidate.options, seconds=seconds)
        command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, capture_output=True, text=True, env=child_environment(), timeout=row.timeout
    )
    if done.returncode:
        raise Failed((done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1])
    return {"time": float(done.stdout)}


START_ROWS: tuple[Row, ...] = (
    *(
        Row(
            f"start-{stage}",
            "start",
            f"a fresh process: {title}, CPU",
            METRICS,
            arguments={"stage": stage},
            measure=measure_start,
            seconds=0.5,
            quick=stage == "echo",
        )
        for stage, title in {
            "import": "import",
            "loop": "import, first loop",
            "echo": "import, first loop, first echo",
        }.items()
    ),
    Row(
        "loop-life",
        "start",
        "a loop made, run and closed (C: a ring set up and closed)",
        (METRICS[1],),
        measure=measure_lives,
        native=("c-uring",),
        seconds=0.3,
    ),
)


def additions(rounds: int) -> None:
    """What the loops add to asyncio: the medians of the differences in each round."""
    loops = [each for each in CANDIDATES if each.name in (CONTROL, PEER, OURS)]
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for number in range(rounds):
        for stage, program in STAGES.items():
            order = loops[number % 3 :] + loops[: number % 3]
            for each in order:
                found.setdefault((stage, each.name), []).append(start(program.format(module=each.module)))
    print(f"{rounds} rounds{'':18}  CPU ms  time ms    MB")
    for stage in STAGES:
        added = {}
        for name in (PEER, OURS):
            pairs = list(zip(found[stage, name], found[stage, CONTROL], strict=True))
            added[name] = [
                statistics.median(ours[m.name] - base[m.name] for ours, base in pairs) for m in METRICS
            ]
            cpu, wall, memory = added[name]
            print(f"{stage:6} {name:20} {cpu * 1e3:7.2f}  {wall * 1e3:7.2f}  {memory / 2**20:5.2f}")
        ratios = [ours / peer for ours, peer in zip(added[OURS], added[PEER], strict=True)]
        print(f"{stage:6} {'ratio':20} {ratios[0]:7.2f}  {ratios[1]:7.2f}  {ratios[2]:5.2f}")


if __name__ == "__main__":
    additions(int(sys.argv[1]) if len(sys.argv) > 1 else 21)
