from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.op cimport Op


cdef class ChildOp(Op):
    # Only the loop's thread uses these fields.
    cdef Engine engine
    cdef int pid
    cdef object exited       # called when the process has ended, again and again until it returns true
    cdef bint through_ring   # the ring waits for the process; otherwise `fd` is a pidfd that this owns

    cdef void _close(self) noexcept
