# WriteBuffer: the bytes that the program has written to one file and the kernel has not taken yet. Owns their memory.
# Makes no system call, and does not know where in the file its bytes belong.
cimport cython
from libc.string cimport memcpy

from uringloop._core.lifetime.guard cimport ur_only_core_makes
from uringloop.files.chunk cimport Chunk, make_chunk


@cython.final
@cython.no_gc  # a Chunk refers to no other object
cdef class WriteBuffer:
    cdef int append(self, const char *data, Py_ssize_t size) except -1:
        """Append the data, which must fit."""
        if self.chunk is None:
            self.chunk = make_chunk(self.room)
        memcpy(self.chunk.data + self.end, data, size)
        self.end += size
        return 0

    cdef bint took(self, Py_ssize_t size) noexcept:
        """The kernel has taken the first `size` bytes; return whether that was all."""
        self.start += size
        if self.start != self.end:
            return False
        self.start = self.end = 0
        return True


cdef WriteBuffer make_write_buffer(Py_ssize_t room):
    cdef WriteBuffer buffer = WriteBuffer.__new__(WriteBuffer)
    buffer.room = room
    return buffer


ur_only_core_makes(WriteBuffer)
