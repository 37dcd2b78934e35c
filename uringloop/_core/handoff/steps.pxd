from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.ready_queue cimport ReadyQueue, Runnable
from uringloop._core.loop.inbox cimport Inbox
from uringloop._core.handoff.waitlist cimport Waitlist


cdef class Numbered(Runnable):
    cdef object number


cdef class InboxSteps:
    cdef ReadyQueue ready
    cdef Engine engine
    cdef Inbox inbox


cdef class LineSteps:
    cdef Waitlist line        # never changes
