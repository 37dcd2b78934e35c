from uringloop._core.awaitables.file_op cimport FileOp, OpOwner
from uringloop.files.cursor cimport Cursor


cdef class OpsInFlight(OpOwner):
    # Only the loop's thread uses these fields.
    cdef Cursor cursor
    cdef FileOp current        # the operation of the call that has its turn; stays after a cancel, until it ends
    cdef int current_moves     # MovedBytes of that
    cdef int apart             # operations that need no turn
    cdef object freed          # a future that is done when the next operation has ended

    cdef bint any(self) noexcept
    cdef int loop_closed(self) noexcept
    cdef int begin_apart(self, FileOp op) except -1
    cdef int leave_apart(self, FileOp op) except -1
    cdef int end_apart(self) except -1
    cdef int wake(self) except -1


cdef OpsInFlight make_ops_in_flight(Cursor cursor)
