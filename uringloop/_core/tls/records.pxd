cdef class Window:
    # Memory of somebody else's, as a buffer to call ssl's objects with: valid for that call only.
    cdef char *start
    cdef Py_ssize_t size
    cdef bint writable

    cdef Window over(self, const char *start, Py_ssize_t size)
    cdef Window onto(self, char *start, Py_ssize_t size)


cdef class Records:
    # The loop's thread only.
    cdef readonly object tls        # the ssl.SSLObject
    cdef object data                # what reads and writes: the object inside of it where the outer adds nothing
    cdef bint lends                 # ... and may be lent memory: it is OpenSSL's own, which keeps none
    cdef Window window
    cdef readonly object incoming   # the two ssl.MemoryBIOs
    cdef readonly object outgoing
    cdef Py_ssize_t fed             # bytes of ciphertext that may still become plain text: at least as much room is needed
    cdef bint dry                   # there is no more plain text until more has arrived
    cdef object failure             # what the next read raises, or None
    cdef readonly bint ended        # the peer's close_notify was read: there never will be

    cdef int feed(self, const char *data, Py_ssize_t length) except -1
    cdef Py_ssize_t waiting(self) except -1
    cdef Py_ssize_t read_into(self, char *room, Py_ssize_t size) except -1
    cdef Py_ssize_t read_copy(self, char *room, Py_ssize_t size) except -1
    cdef bytes read_one(self)
    cdef bytes read_all(self)
    cdef int look(self, Py_ssize_t count, Py_ssize_t size) except -1
    cdef int discard(self, char *room, Py_ssize_t size) except -1
    cdef Py_ssize_t write(self, const char *data, Py_ssize_t size) except -1
    cdef int close(self) except -1
    cdef Py_ssize_t unsent(self) except -1
    cdef bytes take(self)
