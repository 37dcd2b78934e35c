from uringloop._core.engine.epoll cimport EpollEngine


cdef class FakeEngine(EpollEngine):
    # Only the loop's thread uses these fields.
    cdef readonly str seed
    cdef object random              # makes all decisions, from the seed
    cdef list delayed               # (op, result, flags): completions that are held back
    cdef set receivers              # operations in the kernel that have taken a provided buffer before
    cdef readonly dict exaggerates  # how many bytes too many an operation of a class claims; only tests fill it
    cdef readonly dict interfered   # how often it interfered, by kind

    cdef bint chance(self, str kind, int one_in) except -1
