# The kinds of objects whose births and deaths a debug build counts.
cdef enum Counted:
    COUNT_OP
    COUNT_HANDLE
    COUNT_TIMER
    COUNT_BUFFER
    COUNT_FD
    COUNT_TRANSPORT
    COUNT_FIXED
    COUNTED_KINDS

cdef void count_made(Counted kind) noexcept nogil
cdef void count_freed(Counted kind) noexcept nogil
