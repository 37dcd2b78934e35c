from libc.stdint cimport int32_t, uint8_t

from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.op cimport Op
from uringloop._core.kernel.buffers cimport BufferPool
from uringloop._core.transport.transport cimport Transport


cdef enum RecvMode:
    RECV_MULTISHOT     # one submission, a completion with a provided buffer for each arrival
    RECV_ONESHOT       # the same, submitted again each time
    RECV_POLL          # no provided buffers: wait for readiness, then recv(2)
    RECV_DIRECT        # much arrives at a time: wait for readiness, then recv(2) to where it belongs


cdef class RecvOp(Op):
    # The loop's thread only.
    cdef Transport transport     # None once the transport is done with receiving
    cdef Engine engine
    cdef BufferPool pool
    cdef uint8_t mode
    cdef bint ended              # the kernel will say no more until it is submitted again
    cdef int end_result          # ... with which result
    cdef int32_t first           # buffers that arrived and were not delivered yet, chained through the pool
    cdef int32_t last
    cdef uint8_t small_mode      # the RecvMode for when little arrives at a time
    cdef bint readable           # RECV_DIRECT: there is something to take
    cdef int streak              # how many arrivals in a row said that another mode would be better
    cdef list undelivered        # what arrived while reading was paused, oldest first

    cdef int _mode_for_small(self) except -1
    cdef int start(self) except -1
    cdef int failure(self) noexcept
    cdef int stop(self) except -1
    cdef int resume(self) except -1
    cdef void drop(self) noexcept
    cdef void _arrived(self, int number, int length) noexcept
    cdef int _deliver(self) except -1
    cdef int _copy_undelivered(self) except -1
    cdef int _take(self) except -1
    cdef int _measure(self, Py_ssize_t length) except -1
    cdef int _end(self) except -1
