from uringloop._core.engine.epoll cimport EpollEngine


cdef class FakeEngine(EpollEngine):
    # The loop's thread only.
    cdef readonly str seed
    cdef object random              # decides everything, from the seed
    cdef list delayed               # (op, result, flags): completions a real kernel would be late with
    cdef set receivers              # operations in the kernel that took a provided buffer before
    cdef readonly dict interfered   # how often, by kind of interference

    cdef bint chance(self, str kind, int one_in) except -1
