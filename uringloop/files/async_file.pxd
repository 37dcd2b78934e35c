from uringloop._core.awaitables.file_op cimport FileOp
from uringloop.files.call cimport Callee


cdef enum FileCall:
    CALL_READ
    CALL_READLINE
    CALL_NEXT
    CALL_READLINES     # the kinds up to here also read text
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
    # Only the loop's thread uses these fields.
    cdef object lock               # an asyncio.Lock: the turn of calls that have to wait
    cdef int pending               # calls that wait for the lock or hold it: no other call may finish at once
    cdef FileOp current            # the operation of the call that has the lock; stays after a cancel, until it ends
    cdef int apart_ops             # operations in the kernel that need no turn
    cdef object freed              # a future that is done when the next operation has ended
    cdef object closing            # the task that closes the file
    cdef bint is_closed

    cdef bint busy(self) noexcept
    cdef int ended(self) except -1
