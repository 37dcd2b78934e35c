"""What uringloop raises and warns of its own; everything else is asyncio's and Python's."""

import sys


class UringUnavailable(OSError):
    """io_uring was insisted on, and this machine refuses it. The message says why and what to do."""


class UringUnavailableWarning(RuntimeWarning):
    """io_uring is refused here: loops use epoll instead. Said once a process, with the cause and the remedy."""


class InspectorWarning(RuntimeWarning):
    """URINGLOOP_INSPECT asked for an inspector, and there is none. The message says why."""


class InspectionFailed(RuntimeError):
    """A process can't be looked at. The message says why in a line."""


class SchedulerFull(RuntimeError):
    """As many jobs as the scheduler's max_pending are pending. `submit_async` waits instead."""


class ContextDied(RuntimeError):
    """The event loop that ran the job died; `__cause__` is what it died of."""


class JobExited(RuntimeError):
    """A job raised SystemExit or KeyboardInterrupt, its `__cause__`: no reason for its awaiter's loop to end."""


if sys.version_info >= (3, 13):
    from asyncio import QueueShutDown as QueueShutDown
else:

    class QueueShutDown(Exception):
        """The queue was shut down: no item can be put, nor got once none is left."""


class NotInitialised(RuntimeError):
    """A subclass of a primitive did not call __init__ of its base, and a task or thread wants to wait for it."""

    def __init__(self) -> None:
        super().__init__("__init__() was not called")
