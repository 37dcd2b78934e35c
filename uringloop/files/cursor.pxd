cimport cython
from libc.stdint cimport int64_t

from uringloop.files.descriptor cimport Descriptor
from uringloop.files.read_ahead cimport ReadAhead
from uringloop.files.turn_share cimport TurnShare
from uringloop.files.write_buffer cimport WriteBuffer


cdef enum:
    AT_ONCE_MOST = 1 << 20   # the most bytes copied in one step, before other tasks run


cdef enum MovedBytes:
    # What the bytes are that an operation moves, in case its call is cancelled.
    MOVED_FOR_CALL       # no other call needs them
    MOVED_AHEAD          # a stream's next bytes, which must not get lost
    MOVED_UNWRITTEN      # from the write buffer
    MOVED_FROM_CALLER    # from the caller's memory

cdef bytes shrunk(object data, Py_ssize_t size)


@cython.final
cdef class Cursor:
    # Only the loop's thread uses these fields.
    cdef Descriptor descriptor
    cdef TurnShare share
    cdef bint can_read
    cdef bint can_write
    cdef bint appending
    cdef bint raw                  # buffering=0: every call is a system call
    cdef int64_t position          # the offset of the next byte to read or write; tell() returns it
    cdef ReadAhead ahead           # the bytes from `position` on; none while `unwritten` has some, except in a stream
    cdef WriteBuffer unwritten     # the bytes before `position`

    cdef int check_open(self) except -1
    cdef int check(self, bint writing) except -1
    cdef object not_now(self, int64_t res)
    cdef object read_now(self, Py_ssize_t size)
    cdef object read_rest_now(self)
    cdef object read_some_now(self, Py_ssize_t size)
    cdef object read_once_now(self, Py_ssize_t size)
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
    cdef int put_back(self, bytes data) except -1
    cdef int account(self, int kind, object memory, Py_ssize_t size) except -1
    cdef object tell(self)
    cdef object move_to(self, int64_t target)
    cdef int finish_dropped(self) except -1


cdef Cursor make_cursor(Descriptor descriptor, TurnShare share, Py_ssize_t buffer_size, bint can_read, bint can_write,
                        bint appending, int64_t position)
