# Backlog: data written to a TLS connection that is not encrypted yet. Owns the bytes, and decides how many are encrypted at
# a time: it joins small writes, and splits large ones.
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

cdef enum:
    AT_A_TIME = 131072   # after this many bytes, the transport below gets the chance to pause us
    JOIN_UP_TO = 65536   # small writes up to this size take one copy and one call of ssl


cdef class Backlog:
    def __cinit__(self):
        self.pieces = []

    cdef int append(self, bytes data) except -1:
        self.pieces.append(data)
        self.size += PyBytes_GET_SIZE(data)
        return 0

    cdef const char *first(self, Py_ssize_t *size) except NULL:
        """The bytes to encrypt next; not called if there are none. They stay in the backlog until they are taken."""
        self._join_small()
        head = <bytes> self.pieces[0]
        size[0] = min(PyBytes_GET_SIZE(head) - self.offset, <Py_ssize_t> AT_A_TIME)
        return PyBytes_AS_STRING(head) + self.offset

    cdef int taken(self, Py_ssize_t count) except -1:
        """So many bytes of the first piece are encrypted."""
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
        """Join the oldest pieces into one, as many as pay."""
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
