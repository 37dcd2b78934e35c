from libc.stdint cimport int64_t

from uringloop.files.async_file cimport AsyncFile
from uringloop.files.descriptor cimport Descriptor
from uringloop.files.read_ahead cimport ReadAhead
from uringloop.files.write_buffer cimport WriteBuffer


cdef enum:
    AT_ONCE_MOST = 1 << 20   # the most bytes copied in one step, before other tasks run

cdef bytes shrunk(object data, Py_ssize_t size)


cdef class Buffered(AsyncFile):
    cdef readonly Descriptor descriptor
    cdef readonly str mode
    cdef bint can_read
    cdef bint can_write
    cdef bint appending
    cdef bint raw                  # buffering=0: every call is a system call
    cdef int64_t position          # the offset of the next byte to read or write; tell() returns it
    cdef ReadAhead ahead           # the bytes from `position` on; none while `unwritten` has some, except in a stream
    cdef WriteBuffer unwritten     # the bytes before `position`

    cdef int check(self, bint writing) except -1
    cdef object not_now(self, int64_t res)
    cdef object read_now(self, Py_ssize_t size)
    cdef object read_rest_now(self)
    cdef object read_some_now(self, Py_ssize_t size)
    cdef object read_line_now(self, Py_ssize_t size)
    cdef object read_into_now(self, object target)
    cdef object read_exactly_now(self, Py_ssize_t size)
    cdef object write_now(self, object data)
    cdef object seek_now(self, int64_t offset, int whence)
    cdef int flush_now(self) except -1
    cdef int64_t write_out(self) noexcept
    cdef int64_t next_offset(self) noexcept
    cdef int64_t out_offset(self) noexcept
    cdef int64_t refill_now(self, Py_ssize_t wanted) except? -1
    cdef bytes take(self, Py_ssize_t size)
    cdef void advance(self, Py_ssize_t size) noexcept
    cdef void forget_ahead(self) noexcept
    cdef void wrote(self, Py_ssize_t size) noexcept
    cdef int buffer_bytes(self, const char *data, Py_ssize_t size) except -1
    cdef object move_to(self, int64_t target)
