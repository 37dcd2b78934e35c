"""Synchronisation across loops and threads: asyncio's interface, one primitive a module, on the waitlist."""

from uringloop.sync.barrier import Barrier
from uringloop.sync.condition import Condition
from uringloop.sync.event import AutoResetEvent, Event
from uringloop.sync.guarded import Guarded
from uringloop.sync.lock import Lock
from uringloop.sync.queue import LifoQueue, PriorityQueue, Queue
from uringloop.sync.semaphore import BoundedSemaphore, Semaphore

__all__ = [
    "AutoResetEvent",
    "Barrier",
    "BoundedSemaphore",
    "Condition",
    "Event",
    "Guarded",
    "LifoQueue",
    "Lock",
    "PriorityQueue",
    "Queue",
    "Semaphore",
]
