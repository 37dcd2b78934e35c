cimport cython

from uringloop.files.chunk cimport Chunk


@cython.final
cdef class WriteBuffer:
    # Only the loop's thread uses these fields. chunk.data[start:end] are the bytes; both are 0 if there are none.
    cdef Chunk chunk               # None before the first write; the same ever after: an operation may read it
    cdef Py_ssize_t start
    cdef Py_ssize_t end
    cdef Py_ssize_t room           # the size of the chunk

    cdef inline Py_ssize_t size(self) noexcept:
        return self.end - self.start

    cdef inline bint fits(self, Py_ssize_t size) noexcept:
        return self.end + size <= self.room

    cdef inline const char *data(self) noexcept:
        return self.chunk.data + self.start

    cdef int append(self, const char *data, Py_ssize_t size) except -1
    cdef bint took(self, Py_ssize_t size) noexcept


cdef WriteBuffer make_write_buffer(Py_ssize_t room)
