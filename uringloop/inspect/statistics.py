"""Statistics: what a loop did since it was made, and what it has now. Read from counters the loop keeps anyway."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path
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


def thread_cpu_seconds(ident: int) -> float:
    """CPU time of a thread, which may end at any moment unless it is the caller's own; 0 where nothing tells."""
    if ident == threading.get_ident():
        return time.thread_time()
    natives = [thread.native_id for thread in threading.enumerate() if thread.ident == ident]
    try:
        return int(Path(f"/proc/self/task/{natives[0]}/schedstat").read_text().split()[0]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def statistics(loop: Any) -> Statistics:
    thread = loop._thread_id
    cpu = thread_cpu_seconds(thread) if thread else 0.0
    return Statistics(
        engine=loop._engine_name, transports=len(loop._transports), cpu_seconds=cpu, **loop._counts()
    )
