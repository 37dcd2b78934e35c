from libc.stdint cimport int32_t, uint8_t

from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.op cimport Op
from uringloop._core.kernel.buffers cimport BufferPool
from uringloop._core.transport.transport cimport Transport


cdef enum RecvMode:
    RECV_MULTISHOT     # one submission, and a completion with a provided buffer for each arrival
    RECV_ONESHOT       # the same, submitted again each time
    RECV_POLL          # no provided buffers: wait for readiness, then recv(2)
    RECV_DIRECT        # for large arrivals: wait for readiness, then recv(2) straight into the destination


cdef class RecvOp(Op):
    # The loop's thread only.
    cdef Transport transport     # None once the transport has finished receiving
    cdef Engine engine
    cdef BufferPool pool
    cdef uint8_t mode
    cdef bint ended              # the kernel reports nothing more until it is submitted again
    cdef int end_result          # ... with which result
    cdef int32_t first           # filled buffers that were not delivered yet, linked through the pool
    cdef int32_t last
    cdef uint8_t small_mode      # the RecvMode for small arrivals
    cdef bint readable           # RECV_DIRECT: data has arrived
    cdef int streak              # consecutive arrivals for which another mode would be better
    cdef list undelivered        # data that arrived while reading was paused, the oldest first

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
