from libc.stdint cimport int32_t, uint32_t, uint8_t

from uringloop._core.engine.op cimport Op
from uringloop._core.loop.loop cimport Loop


cdef class FutureOp(Op):
    # Only the loop's thread uses these fields.
    cdef readonly Loop loop
    cdef object future         # the future that the awaiting task waits for, while suspended
    cdef int res               # the result of the last completion
    cdef uint8_t phase         # CoroutinePhase
    cdef bint done             # it has completed since it was last submitted

    cdef object first(self)
    cdef object again(self)
    cdef int left(self) except -1
    cdef object advance(self)
    cdef int stop(self) except -1
    cdef object suspend(self)


cdef class ReadyOp(FutureOp):
    cdef uint32_t events       # POLLIN or POLLOUT

    cdef int file_closes(self, object refs) except -1
