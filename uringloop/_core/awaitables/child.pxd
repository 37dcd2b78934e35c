from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.op cimport Op


cdef class ChildOp(Op):
    # The loop's thread only.
    cdef Engine engine
    cdef int pid
    cdef object exited       # called when the process has ended, until it says that was so
    cdef bint through_ring   # the kernel waits for the process itself; else `fd` is a pidfd of our own

    cdef void _close(self) noexcept
