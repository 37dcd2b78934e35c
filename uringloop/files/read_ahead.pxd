cimport cython

from uringloop.files.chunk cimport Chunk

cdef enum:
    WINDOW = 8192            # the first read-ahead; doubled while the program reads sequentially
    WINDOW_MOST = 131072


@cython.final
cdef class ReadAhead:
    # Only the loop's thread uses these fields. chunk.data[start:end] are the bytes.
    cdef Chunk chunk               # None before the first read
    cdef Py_ssize_t start
    cdef Py_ssize_t end
    cdef Py_ssize_t window         # how much to read the next time

    cdef inline Py_ssize_t size(self) noexcept:
        return self.end - self.start

    cdef inline void skip(self, Py_ssize_t size) noexcept:
        """Drop the first `size` bytes: a call has taken them."""
        self.start += size

    cdef inline void clear(self) noexcept:
        self.start = self.end = 0

    cdef inline void expect_sequential_reads(self) noexcept:
        self.window = max(self.window, <Py_ssize_t> WINDOW)

    cdef bytes take(self, Py_ssize_t size)
    cdef bytes peek(self)
    cdef void copy_to(self, char *target, Py_ssize_t size) noexcept
    cdef Py_ssize_t find_line_end(self, Py_ssize_t looked) noexcept
    cdef void move(self, Py_ssize_t distance) noexcept
    cdef Py_ssize_t next_size(self, Py_ssize_t wanted, Py_ssize_t most) noexcept
    cdef char *make_room(self, Py_ssize_t size) except NULL
    cdef int adopt(self, Chunk read, Py_ssize_t skip, Py_ssize_t size) except -1
    cdef int join(self, const char *data, Py_ssize_t size, bint in_front) except -1


cdef ReadAhead make_read_ahead()
