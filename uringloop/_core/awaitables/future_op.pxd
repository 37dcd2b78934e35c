from libc.stdint cimport int32_t, uint32_t, uint8_t

from uringloop._core.engine.op cimport Op
from uringloop._core.loop.loop cimport Loop


cdef class FutureOp(Op):
    # The loop's thread only.
    cdef readonly Loop loop
    cdef object future         # what the awaiting task waits for, while suspended
    cdef int res               # of the last completion
    cdef uint8_t phase         # CoroutinePhase
    cdef bint done             # completed since it was last submitted

    cdef object first(self)
    cdef object again(self)
    cdef int left(self) except -1
    cdef object advance(self)
    cdef int stop(self) except -1
    cdef object suspend(self)


cdef class ReadyOp(FutureOp):
    cdef uint32_t events       # POLLIN or POLLOUT

    cdef int file_closes(self, object refs) except -1
