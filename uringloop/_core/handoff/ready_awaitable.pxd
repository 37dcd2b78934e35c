cdef class ReadyAwaitable:
    cdef object value      # never changes


cdef ReadyAwaitable READY_NONE     # awaiting it returns None
cdef object ready_awaitable(object value)
