from uringloop._core.handoff.waitlist cimport Waitlist


cdef class Event(Waitlist):
    cdef int flag          # written under the guard, read without it


cdef class AutoResetEvent(Waitlist):
    cdef bint flag         # under the guard
