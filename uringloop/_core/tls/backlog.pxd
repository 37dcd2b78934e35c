cdef class Backlog:
    # The loop's thread only.
    cdef list pieces           # of bytes, oldest first
    cdef Py_ssize_t size       # bytes in all of them, less those taken
    cdef Py_ssize_t offset     # bytes already taken of the oldest piece

    cdef int append(self, bytes data) except -1
    cdef const char *first(self, Py_ssize_t *size) except NULL
    cdef int taken(self, Py_ssize_t count) except -1
    cdef int clear(self) except -1
    cdef int _join_small(self) except -1
