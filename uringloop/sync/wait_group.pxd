from uringloop._core.handoff.waitlist cimport Waitlist


cdef class WaitGroup(Waitlist):
    cdef readonly Py_ssize_t count     # under the guard

    cdef int add(self, Py_ssize_t more) except -1
    cdef bint drop(self) except -1
