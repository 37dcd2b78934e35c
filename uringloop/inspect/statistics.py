"""Statistics: counters of what a loop has done, and the sizes of what it has now. The loop keeps these counters
anyway."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Statistics:
    """What `loop.statistics()` returns. Counters start when the loop is made; the other fields are of this moment."""

    engine: str
    turns: int  # passes through ready queue, kernel and timers
    callbacks: int  # handles, timers and completed operations run
    submitted: int  # operations handed to the kernel
    completed: int  # completions the kernel reported
    sleeps: int  # times the thread waited in the kernel
    wakes: int  # times another thread ended such a wait
    system_calls: int  # system calls to submit or wait
    ready: int  # callbacks waiting for the next turn
    timers: int  # timers scheduled and not cancelled
    waiting: int  # callbacks from other threads that the loop has not taken yet
    in_kernel: int  # operations in the kernel
    transports: int  # open transports
    buffers: int  # receive buffers
    buffers_out: int  # receive buffers not given back yet
    cpu_seconds: float  # CPU time of the thread that runs the loop; 0 while no thread does


# The fields that only grow.
COUNTERS = ("turns", "callbacks", "submitted", "completed", "sleeps", "wakes", "system_calls", "cpu_seconds")


def thread_cpu_seconds(ident: int) -> float:
    """CPU time of a thread. Another thread than the caller's may end at any moment: 0 if its time can't be read."""
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
