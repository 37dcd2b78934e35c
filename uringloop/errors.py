"""uringloop's own exceptions and warnings; all others are asyncio's and Python's."""

import sys


class UringUnavailable(OSError):
    """The program requires io_uring, and this machine refuses it. The message gives the cause and the remedy."""


class UringUnavailableWarning(RuntimeWarning):
    """This machine refuses io_uring, so loops use epoll. Issued once per process, with the cause and the remedy."""


class InspectorWarning(RuntimeWarning):
    """URINGLOOP_INSPECT requests an inspector, and it could not be opened. The message says why."""


class InspectionFailed(RuntimeError):
    """A process can't be inspected. The message says why in one line."""


class SchedulerFull(RuntimeError):
    """The scheduler's max_pending jobs are already pending. `submit_async` waits instead of raising this."""


class ContextDied(RuntimeError):
    """The event loop that ran the job died; `__cause__` is the exception that ended it."""


class JobExited(RuntimeError):
    """A job raised SystemExit or KeyboardInterrupt (`__cause__`), which must not end the loop of its awaiter."""


if sys.version_info >= (3, 13):
    from asyncio import QueueShutDown as QueueShutDown
else:

    class QueueShutDown(Exception):
        """The queue was shut down: put() fails at once, and get() as soon as the queue is empty."""


class NotInitialised(RuntimeError):
    """A task or thread waits for a primitive whose subclass did not call the __init__ of its base class."""

    def __init__(self) -> None:
        super().__init__("__init__() was not called")
