from uringloop._core.engine.fixed_buffer cimport FixedBuffer, FixedMemory
from uringloop._core.handoff.waitlist cimport Waitlist


cdef class FixedBuffers(Waitlist):
    # Never change:
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t size
    cdef Py_ssize_t stride           # from one buffer to the next; each begins on a page of its own
    # Under the waitlist's guard:
    cdef FixedMemory memory          # None once closed; each lent buffer keeps a reference of its own
    cdef int *numbers                # numbers[:back] are the buffers that are not lent
    cdef Py_ssize_t back
    cdef Py_ssize_t free             # how many of these are not promised to a waiter

    cdef void came_back(self, int number) noexcept


cdef class LentBuffer(FixedBuffer):
    cdef FixedBuffers lender
    cdef int number
