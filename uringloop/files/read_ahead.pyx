# ReadAhead: the bytes of one file that the kernel has returned and no call has taken yet. Owns their memory, and decides
# how much to read ahead the next time: the size doubles while the program reads sequentially. Makes no system call, and
# does not know where in the file its bytes are.
cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.string cimport memchr, memcpy, memmove

from uringloop._core.lifetime.guard cimport ur_only_core_makes
from uringloop.files.chunk cimport Chunk, make_chunk


@cython.final
@cython.no_gc  # a Chunk refers to no other object
cdef class ReadAhead:
    cdef bytes take(self, Py_ssize_t size):
        cdef bytes taken = PyBytes_FromStringAndSize(self.chunk.data + self.start if size else NULL, size)
        self.start += size
        return taken

    cdef bytes peek(self):
        """All of the bytes, which stay."""
        return PyBytes_FromStringAndSize(self.chunk.data + self.start if self.end else NULL, self.end - self.start)

    cdef void copy_to(self, char *target, Py_ssize_t size) noexcept:
        """Copy the first `size` bytes, which stay."""
        if size:
            memcpy(target, self.chunk.data + self.start, size)

    cdef Py_ssize_t find_line_end(self, Py_ssize_t looked) noexcept:
        """The length of the first line with its end, or -1. No line ends in the first `looked` bytes."""
        cdef Py_ssize_t left = self.end - self.start
        cdef char *line
        cdef char *found
        if left <= looked:
            return -1
        line = self.chunk.data + self.start
        found = <char *> memchr(line + looked, c'\n', left - looked)
        return found - line + 1 if found is not NULL else -1

    cdef void move(self, Py_ssize_t distance) noexcept:
        """Begin at another byte, before or behind the first one. If that is not in memory, drop all, and don't assume that
        the program will read sequentially from there."""
        if -self.start <= distance <= self.end - self.start:
            self.start += distance
        else:
            self.clear()
            self.window = 0

    # The next read

    cdef Py_ssize_t next_size(self, Py_ssize_t wanted, Py_ssize_t most) noexcept:
        """The size of the next read, by which a call gets `wanted` more bytes if these are not more than `most`."""
        return max(max(self.window, <Py_ssize_t> WINDOW), min(wanted, most))

    cdef char *make_room(self, Py_ssize_t size) except NULL:
        """Make room behind the bytes for a read of `size`; return where to read to. `end` moves once that is done."""
        cdef Py_ssize_t left = self.end - self.start
        cdef Chunk larger
        if self.chunk is None or self.chunk.room < left + size:
            larger = make_chunk(left + size)
            if left:
                memcpy(larger.data, self.chunk.data + self.start, left)
            self.chunk = larger
            self.start = 0
            self.end = left
        elif self.chunk.room - self.end < size:
            memmove(self.chunk.data, self.chunk.data + self.start, left)
            self.start = 0
            self.end = left
        self.window = min(2 * size, <Py_ssize_t> WINDOW_MOST)
        return self.chunk.data + self.end

    cdef int adopt(self, Chunk read, Py_ssize_t skip, Py_ssize_t size) except -1:
        """Append read.data[skip:skip + size], which an operation has read; takes over the chunk where that saves a copy."""
        cdef Py_ssize_t left = self.end - self.start
        if left:
            self.join(read.data + skip, size, False)
        else:
            self.chunk = read
            self.start = skip
            self.end = skip + size
        self.window = min(max(2 * self.window, <Py_ssize_t> (2 * WINDOW)), <Py_ssize_t> WINDOW_MOST)
        return 0

    cdef int join(self, const char *data, Py_ssize_t size, bint in_front) except -1:
        """Put the data in front of the bytes, or behind them."""
        cdef Py_ssize_t left = self.end - self.start
        cdef Chunk larger = make_chunk(left + size)
        memcpy(larger.data + (0 if in_front else left), data, size)
        if left:
            memcpy(larger.data + (size if in_front else 0), self.chunk.data + self.start, left)
        self.chunk = larger
        self.start = 0
        self.end = left + size
        return 0


cdef ReadAhead make_read_ahead():
    cdef ReadAhead ahead = ReadAhead.__new__(ReadAhead)
    ahead.window = WINDOW
    return ahead


ur_only_core_makes(ReadAhead)
