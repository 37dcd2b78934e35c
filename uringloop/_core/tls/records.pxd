cdef class Window:
    # The caller's memory as a buffer for a call of ssl's objects; valid only during that call.
    cdef char *start
    cdef Py_ssize_t size
    cdef bint writable

    cdef Window over(self, const char *start, Py_ssize_t size)
    cdef Window onto(self, char *start, Py_ssize_t size)


cdef class Records:
    # The loop's thread only.
    cdef readonly object tls        # the ssl.SSLObject
    cdef object data                # the object to read and write with: `tls`, or the object inside it if `tls` adds nothing
    cdef bint lends                 # ... that object is the ssl module's own: it keeps no buffer, so memory may be lent to it
    cdef Window window
    cdef readonly object incoming   # the two ssl.MemoryBIOs
    cdef readonly object outgoing
    cdef Py_ssize_t fed             # bytes of ciphertext that may still become plain text: reads need room for as many
    cdef bint dry                   # there is no plain text until more ciphertext arrives
    cdef object failure             # the exception that the next read raises, or None
    cdef readonly bint ended        # the peer's close_notify was read: no more plain text follows

    cdef int feed(self, const char *data, Py_ssize_t length) except -1
    cdef int keep(self) except -1
    cdef Py_ssize_t waiting(self) except -1
    cdef Py_ssize_t read_into(self, char *room, Py_ssize_t size) except -1
    cdef Py_ssize_t read_copy(self, char *room, Py_ssize_t size) except -1
    cdef bytes read_one(self)
    cdef bytes read_all(self)
    cdef int look(self, Py_ssize_t count, Py_ssize_t size) except -1
    cdef int discard(self) except -1
    cdef Py_ssize_t write(self, const char *data, Py_ssize_t size) except -1
    cdef int close(self) except -1
    cdef Py_ssize_t unsent(self) except -1
    cdef bytes take(self)
