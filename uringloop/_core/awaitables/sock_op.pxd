from uringloop._core.awaitables.future_op cimport ReadyOp
from uringloop._core.awaitables.io_refs cimport IoRefs
from uringloop._core.kernel.libc cimport sockaddr_storage, socklen_t


cdef class SockOp(ReadyOp):
    # The loop's thread only.
    cdef object sock
    cdef IoRefs refs            # the socket's, while this is submitted
    cdef bint by_method         # it may have methods of its own: they are called
    cdef bint readiness_known   # no ring: readiness was announced

    cdef int forget(self) except -1
    cdef int prepare(self) except -1
    cdef object act(self)
    cdef int unless_blocked(self, int error) except -1


cdef class SockRecv(SockOp):
    cdef object wanted_size     # as given
    cdef Py_ssize_t size
    cdef object _large(self)


cdef class SockRecvInto(SockOp):
    cdef object buffer


cdef class SockRecvFrom(SockOp):
    cdef object wanted_size
    cdef Py_ssize_t size


cdef class SockRecvFromInto(SockOp):
    cdef object buffer
    cdef object wanted_size


cdef class SockSendAll(SockOp):
    cdef object data            # as given
    cdef object data_view       # a memoryview of it while this waits: the collector knows how to release that, a Py_buffer not
    cdef Py_ssize_t count       # bytes sent
    cdef object _send_rest(self, const char *start, Py_ssize_t size)
    cdef object _by_method(self)


cdef class SockSendTo(SockOp):
    cdef object data
    cdef object address


cdef class SockAccept(SockOp):
    pass


cdef class SockWritable(SockOp):
    pass
