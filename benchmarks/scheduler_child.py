"""A server process of the rows `served-*`: ``python -m benchmarks.scheduler_child LOOPS PORT``.

Serves echo by streams on so many loops, prints the port, and serves until it is killed. Several processes may share a
port.
"""

from __future__ import annotations

import signal
import sys

import uringloop
from benchmarks.limits import allow_files
from benchmarks.workers import answer

BACKLOG = 4096


def main(loops: int, port: int) -> None:
    allow_files(20_000)
    with uringloop.Scheduler(loops) as scheduler:
        served = scheduler.serve(answer, "127.0.0.1", port, backlog=BACKLOG)
        print(served.port, flush=True)
        signal.pause()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
