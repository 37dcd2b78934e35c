from uringloop._core.engine.fixed_buffer cimport FixedBuffer, FixedMemory
from uringloop._core.wait.waitlist cimport Waitlist


cdef class FixedBuffers(Waitlist):
    # Never change:
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t size
    cdef Py_ssize_t stride           # from one to the next, each on a page of its own
    # Under the line's guard:
    cdef FixedMemory memory          # None once closed: who has a part of it keeps it
    cdef int *numbers                # numbers[:back] are with nobody
    cdef Py_ssize_t back
    cdef Py_ssize_t free             # of these, the ones nobody was promised

    cdef void came_back(self, int number) noexcept


cdef class LentBuffer(FixedBuffer):
    cdef FixedBuffers lender
    cdef int number
