"""uringloop: an asyncio event loop for Linux whose only way to sleep is one io_uring."""

import sys
from asyncio import unix_events as _unix_events
from typing import TYPE_CHECKING

from uringloop import _compiled

if _compiled not in sys.meta_path:
    sys.meta_path.insert(0, _compiled)  # finds the compiled modules

try:
    _compiled.start(True)
    from uringloop.errors import UringUnavailable, UringUnavailableWarning
    from uringloop.loop import EventLoop, new_event_loop
    from uringloop.runner import run
finally:
    _compiled.start(False)

if TYPE_CHECKING:
    from uringloop.errors import (
        ContextDied,
        InspectionFailed,
        InspectorWarning,
        JobExited,
        NotInitialised,
        QueueShutDown,
        SchedulerFull,
    )
    from uringloop.files import BuffersClosed, fs, open_file
    from uringloop.policy import EventLoopPolicy, install
    from uringloop.scheduler import Job, Scheduler, current_context
    from uringloop.sync import (
        AutoResetEvent,
        Barrier,
        BoundedSemaphore,
        Condition,
        Event,
        Guarded,
        LifoQueue,
        Lock,
        PriorityQueue,
        Queue,
        Semaphore,
    )
    from uringloop.version import __version__

__all__ = [
    "AutoResetEvent",
    "Barrier",
    "BoundedSemaphore",
    "BuffersClosed",
    "Condition",
    "ContextDied",
    "Event",
    "EventLoop",
    "EventLoopPolicy",
    "Guarded",
    "InspectionFailed",
    "InspectorWarning",
    "Job",
    "JobExited",
    "LifoQueue",
    "Lock",
    "NotInitialised",
    "PriorityQueue",
    "Queue",
    "QueueShutDown",
    "Scheduler",
    "SchedulerFull",
    "Semaphore",
    "UringUnavailable",
    "UringUnavailableWarning",
    "__version__",
    "current_context",
    "fs",
    "install",
    "new_event_loop",
    "open_file",
    "run",
]

# Python 3.16 has no policies: there, looking the name up raises an AttributeError that says what to use.
if not any(
    hasattr(_unix_events, name) for name in ("_UnixDefaultEventLoopPolicy", "_DefaultEventLoopPolicy")
):
    globals()["__all__"].remove("EventLoopPolicy")  # type checkers needn't know

# Imported on first use: a program with one loop, on the network, needs none of them. The room of all others is `sync`.
_ROOMS = {
    **dict.fromkeys(("Job", "Scheduler", "current_context"), "scheduler"),
    **dict.fromkeys(("BuffersClosed", "fs", "open_file"), "files"),
    **dict.fromkeys(
        (
            "ContextDied",
            "InspectionFailed",
            "InspectorWarning",
            "JobExited",
            "NotInitialised",
            "QueueShutDown",
            "SchedulerFull",
        ),
        "errors",
    ),
    **dict.fromkeys(("EventLoopPolicy", "install"), "policy"),
    "__version__": "version",
}


def __getattr__(name: str) -> object:
    if name in __all__ or name == "EventLoopPolicy":
        import importlib

        room = importlib.import_module(f"uringloop.{_ROOMS.get(name, 'sync')}")
        globals()[name] = found = getattr(room, name)
        return found
    if name in ("files", "ops", "policy", "version"):
        import importlib

        return importlib.import_module(f"uringloop.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
