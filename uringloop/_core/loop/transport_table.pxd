from cpython.object cimport PyObject


cdef class TransportTable:
    cdef PyObject **transports     # by descriptor, borrowed; NULL: none
    cdef Py_ssize_t size           # the length of the array
    cdef Py_ssize_t count
    cdef object weak               # on free-threaded Pythons: a WeakValueDictionary instead of the array

    cdef int put(self, int fd, object transport) except -1
    cdef int _grow(self, int fd) except -1
    cdef object find(self, int fd)
    cdef bint has(self, int fd) noexcept
    cdef int drop(self, int fd, object transport) except -1
