from uringloop._core.handoff.wait cimport Entry
from uringloop._core.handoff.waitlist cimport Waitlist


cdef class Acquirable(Waitlist):
    cdef Entry entry       # never changes
    cdef bint direct       # never changes: no subclass in Python overrides release()

    cdef int let_go(self) except -1
