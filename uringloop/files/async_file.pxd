from uringloop._core.awaited.file_op cimport FileOp
from uringloop.files.call cimport Callee


cdef enum FileCall:
    CALL_READ
    CALL_READLINE
    CALL_NEXT
    CALL_READLINES     # up to here: what text can do as well
    CALL_READ1
    CALL_READINTO
    CALL_PEEK
    CALL_WRITE
    CALL_WRITELINES
    CALL_SEEK
    CALL_TELL
    CALL_TRUNCATE
    CALL_FLUSH
    CALL_FSYNC
    CALL_FDATASYNC
    CALL_ALLOCATE
    CALL_ADVISE
    CALL_PREAD
    CALL_PWRITE
    CALL_CLOSE


cdef class AsyncFile(Callee):
    # The loop's thread only.
    cdef object lock               # whose turn it is, of calls that have to wait
    cdef int pending               # calls that wait for it or have it: nothing finishes at once meanwhile
    cdef FileOp current            # the operation of the call that has the lock; remains after a cancel, until it ends
    cdef int apart_ops             # operations in the kernel that need no turn
    cdef object freed              # a future of who waits for that end
    cdef object closing            # the task that closes
    cdef bint is_closed

    cdef bint busy(self) noexcept
    cdef int ended(self) except -1
