# Backlog: what was written to a TLS connection and is not encrypted yet. Owns the bytes, and says how much of them goes
# at a time: small writes as one, much in parts.
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

cdef enum:
    AT_A_TIME = 131072   # then the transport below may say that it has enough
    JOIN_UP_TO = 65536   # one call, and one copy, for as many small writes


cdef class Backlog:
    def __cinit__(self):
        self.pieces = []

    cdef int append(self, bytes data) except -1:
        self.pieces.append(data)
        self.size += PyBytes_GET_SIZE(data)
        return 0

    cdef const char *first(self, Py_ssize_t *size) except NULL:
        """What is to be encrypted next; only where there is something. It stays until it is taken."""
        self._join_small()
        head = <bytes> self.pieces[0]
        size[0] = min(PyBytes_GET_SIZE(head) - self.offset, <Py_ssize_t> AT_A_TIME)
        return PyBytes_AS_STRING(head) + self.offset

    cdef int taken(self, Py_ssize_t count) except -1:
        """So much of the first is encrypted."""
        if self.size == 0:
            return 0  # the connection was lost meanwhile
        self.size -= count
        self.offset += count
        if self.offset == PyBytes_GET_SIZE(<bytes> self.pieces[0]):
            del self.pieces[0]
            self.offset = 0
        return 0

    cdef int clear(self) except -1:
        self.pieces.clear()
        self.size = self.offset = 0
        return 0

    cdef int _join_small(self) except -1:
        """Make one of the oldest, as many as are worth it."""
        cdef Py_ssize_t count = 1, waiting = len(self.pieces)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(<bytes> self.pieces[0])
        while count < waiting:
            size += PyBytes_GET_SIZE(<bytes> self.pieces[count])
            if size > JOIN_UP_TO:
                break
            count += 1
        if count > 1:
            self.pieces[:count] = [b"".join(self.pieces[:count])]
        return 0
