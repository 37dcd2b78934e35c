from uringloop._core.handoff.waitlist cimport Waiter, Waitlist


cdef class Barrier(Waitlist):
    cdef readonly Py_ssize_t parties   # never changes
    cdef Py_ssize_t round              # under the guard: how many rounds have ended, and how many resets there were

    cdef int break_round(self, Py_ssize_t round) except -1
    cdef bint arrive(self, Waiter waiter, Py_ssize_t *round) except -1
