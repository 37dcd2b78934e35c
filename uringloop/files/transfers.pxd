from uringloop._core.file_op cimport FileOp
from uringloop.files.buffered cimport Buffered


cdef enum CurrentOp:
    # What the operation `current` moves, should its call be cancelled.
    CURRENT_NOTHING      # into memory nobody looks at any more
    CURRENT_AHEAD        # a stream's next bytes, which must not get lost
    CURRENT_OUT          # what is in `out`
    CURRENT_DIRECT       # the caller's bytes


cdef class Transfers(Buffered):
    cdef int current_kind          # CurrentOp

    cdef int settle(self, FileOp op) except -1
    cdef int unread(self, const char *data, Py_ssize_t size) except -1
