from uringloop._core.engine cimport Engine
from uringloop._core.inbox cimport Inbox
from uringloop._core.ready cimport ReadyQueue, Runnable
from uringloop._core.waitlist cimport Waitlist


cdef class Numbered(Runnable):
    cdef object number


cdef class InboxSteps:
    cdef ReadyQueue ready
    cdef Engine engine
    cdef Inbox inbox


cdef class LineSteps(Waitlist):
    cdef readonly bint held   # the guard
