"""One program on many loops: contexts (a thread and its loop), and a scheduler that distributes jobs to them."""

from uringloop.scheduler.context import Context, current_context
from uringloop.scheduler.group import JobGroup
from uringloop.scheduler.job import Job
from uringloop.scheduler.scheduler import Scheduler
from uringloop.scheduler.served import Served
from uringloop.scheduler.stopping import StopReport

__all__ = ["Context", "Job", "JobGroup", "Scheduler", "Served", "StopReport", "current_context"]
