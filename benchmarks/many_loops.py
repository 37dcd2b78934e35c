"""The rows `served-*`: what connections cost a server whose port several loops of a Scheduler serve.

The figure is the connections for each second of the server's processor time, on so many loops against on one. Beside it
stands the same for as many processes with a loop each, which share nothing but the port and the machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import ExitStack

from benchmarks.candidate import Candidate
from benchmarks.native_build import native_program
from benchmarks.row import Failed, Metric, Row
from benchmarks.worker import child_environment

CLIENTS = 40
WARM_UP = 0.2


def served_rows() -> list[Row]:
    metrics = (
        Metric("loops", "x"),
        Metric("processes", "x", compared=False),
        Metric("cpu", "s", higher_is_better=False),
    )
    return [
        Row(
            f"served-{loops}",
            "served",
            f"connections per CPU second: {loops} loops over one",
            metrics,
            arguments={"loops": loops},
            measure=measure_served,
            only=("uringloop",),
            seconds=0.5,
        )
        for loops in (2, 4, 8)
    ]


def measure_served(row: Row, candidate: Candidate, seconds: float) -> dict[str, float]:
    loops = row.arguments["loops"]
    one = cost_of_connection(1, 1, seconds, row.timeout)
    many = cost_of_connection(1, loops, seconds, row.timeout)
    apart = cost_of_connection(loops, 1, seconds, row.timeout)
    return {"loops": one / many, "processes": one / apart, "cpu": many}


def cost_of_connection(processes: int, loops: int, seconds: float, timeout: float) -> float:
    """The processor time, in seconds, that all server processes together spend on one connection."""
    with ExitStack() as stack:
        port, servers = 0, []
        for _ in range(processes):
            command = [sys.executable, "-m", "benchmarks.scheduler_child", str(loops), str(port)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, env=child_environment())
            stack.callback(end, process)
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise Failed("the server did not start")
            port = int(line)
            servers.append(process)
        connections(port, WARM_UP, timeout)
        before = sum(processor_time(server) for server in servers)
        count = connections(port, seconds, timeout)
        return (sum(processor_time(server) for server in servers) - before) / count


def connections(port: int, seconds: float, timeout: float) -> int:
    """How many connections the client opens, uses once and closes."""
    command = [str(native_program("client")), "-m", "connect", "-a", str(port), "-n", str(CLIENTS)]
    command += ["-s", "64", "-w", "0", "-t", str(seconds)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise Failed("hung: the client got no further") from None
    if done.returncode:
        raise Failed(f"client: {done.stderr.strip()[:200]}")
    count: int = json.loads(done.stdout)["messages"]
    if not count:
        raise Failed("no connection came to its end")
    return count


def processor_time(process: subprocess.Popen[bytes]) -> float:
    return time.clock_gettime((~process.pid << 3) | 2)


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
