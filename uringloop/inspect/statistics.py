"""Statistics: what a loop did since it was made, and what it has now. Read from counters the loop keeps anyway."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Statistics:
    """What `loop.statistics()` returns. Counters are since the loop was made, the others are of this moment."""

    engine: str
    turns: int  # passes through ready, kernel, timers
    callbacks: int  # handles, timers and completed operations run
    submitted: int  # operations handed to the kernel
    completed: int  # completions the kernel reported
    sleeps: int  # times the thread waited in the kernel
    wakes: int  # times another thread ended such a wait
    system_calls: int  # entering the kernel to submit or wait
    ready: int  # waiting for the next turn
    timers: int  # scheduled and not cancelled
    waiting: int  # handed in by other threads and not yet taken
    in_kernel: int  # operations
    transports: int
    buffers: int  # for receiving
    buffers_out: int  # of these, not given back yet
    cpu_seconds: float  # of the thread that runs the loop; 0 while none does


# Those that only grow.
COUNTERS = ("turns", "callbacks", "submitted", "completed", "sleeps", "wakes", "system_calls", "cpu_seconds")


def statistics(loop: Any) -> Statistics:
    thread = loop._thread_id
    cpu = time.clock_gettime(time.pthread_getcpuclockid(thread)) if thread else 0.0
    return Statistics(
        engine=loop._engine_name, transports=len(loop._transports), cpu_seconds=cpu, **loop._counts()
    )
