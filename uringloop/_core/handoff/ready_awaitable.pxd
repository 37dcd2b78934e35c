cdef class ReadyAwaitable:
    cdef object value      # never changes


cdef ReadyAwaitable READY_NONE     # awaiting it gives None
cdef object ready_awaitable(object value)
