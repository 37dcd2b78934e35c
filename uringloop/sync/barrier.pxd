from cpython.object cimport PyObject

from uringloop._core.waitlist cimport Waitlist


cdef class Barrier(Waitlist):
    cdef readonly Py_ssize_t parties   # never changes

    cdef PyObject *arrive(self, object waiter, bint *last) noexcept
