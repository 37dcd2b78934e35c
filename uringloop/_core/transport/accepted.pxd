from uringloop._core.engine.ready_queue cimport Runnable
from uringloop._core.loop.loop cimport Loop
from uringloop._core.transport.stream cimport StreamTransport


cdef class Accepted(Runnable):
    # The loop's thread only.
    cdef Accepting accepting
    cdef StreamTransport transport
    cdef object listener           # net/servers.py's
    cdef bint introduced           # connection_made was called
    cdef bint cancelled

    cdef int begin(self, int fd, object protocol, object cvars) except -1
    cdef int introduce(self) except -1
    cdef int end(self) except -1


cdef class Accepting:
    # Only the loop's thread uses these, but any thread reads `pending`.
    cdef Loop loop                 # None once closed
    cdef dict pending              # Accepted: None, in the order of arrival
    cdef list callbacks            # (callback, context), called once nothing is pending
    cdef public bint _asyncio_future_blocking
    cdef object name
    cdef object __weakref__

    cdef int left(self, Accepted accepted) except -1
