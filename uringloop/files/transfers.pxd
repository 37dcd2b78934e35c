from libc.stdint cimport int64_t

from uringloop._core.awaitables.file_op cimport FileOp
from uringloop.files.buffered cimport Buffered
from uringloop.files.chunk cimport Borrowed


cdef enum CurrentOp:
    # The data that the operation `current` moves, in case its call is cancelled.
    CURRENT_NOTHING      # data that no call needs any more
    CURRENT_AHEAD        # a stream's next bytes, which must not get lost
    CURRENT_OUT          # the write buffer
    CURRENT_DIRECT       # the caller's bytes


cdef enum:
    STEP_MOST = 1 << 20      # the most bytes per operation: the ring, too, copies cached data in the loop's thread


cdef class Transfers(Buffered):
    cdef int current_kind          # CurrentOp

    cdef int settle(self, FileOp op) except -1
    cdef bint takes(self, Borrowed lent, int64_t offset) noexcept
    cdef int put_back(self, bytes data) except -1
