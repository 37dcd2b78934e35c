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

    cdef bint busy(self) noexcept
