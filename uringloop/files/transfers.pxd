from libc.stdint cimport int64_t

from uringloop._core.awaited.file_op cimport FileOp
from uringloop.files.buffered cimport Buffered
from uringloop.files.chunk cimport Borrowed


cdef enum CurrentOp:
    # What the operation `current` moves, should its call be cancelled.
    CURRENT_NOTHING      # into memory nobody looks at any more
    CURRENT_AHEAD        # a stream's next bytes, which must not get lost
    CURRENT_OUT          # what is in `out`
    CURRENT_DIRECT       # the caller's bytes


cdef enum:
    STEP_MOST = 1 << 20      # what the cache holds is copied in the loop's thread, by the ring as well


cdef class Transfers(Buffered):
    cdef int current_kind          # CurrentOp

    cdef int settle(self, FileOp op) except -1
    cdef bint takes(self, Borrowed lent, int64_t offset) noexcept
    cdef int join_ahead(self, const char *data, Py_ssize_t size, bint in_front) except -1
    cdef int put_back(self, bytes data) except -1
