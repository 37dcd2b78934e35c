from uringloop._core.awaitables.future_op cimport ReadyOp
from uringloop._core.awaitables.io_refs cimport IoRefs
from uringloop._core.kernel.libc cimport sockaddr_storage, socklen_t


cdef class SockOp(ReadyOp):
    # Only the loop's thread uses these fields.
    cdef object sock
    cdef IoRefs refs            # the socket's, while this is submitted
    cdef bint by_method         # not a plain socket.socket: its class may override methods, so we call those
    cdef bint readiness_known   # without a ring: epoll has reported readiness

    cdef int forget(self) except -1
    cdef int prepare(self) except -1
    cdef object act(self)
    cdef object call_method(self, str name, tuple arguments)
    cdef int unless_blocked(self, int error) except -1


cdef class SockRecv(SockOp):
    cdef object wanted_size     # as the caller gave it
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
    cdef object data            # as the caller gave it
    cdef object data_view       # a memoryview of it while this waits; not a Py_buffer, which the collector cannot release
    cdef Py_ssize_t count       # how many bytes were sent
    cdef object _send_rest(self, const char *start, Py_ssize_t size)
    cdef object _by_method(self)


cdef class SockSendTo(SockOp):
    cdef object data
    cdef object address


cdef class SockAccept(SockOp):
    pass


cdef class SockWritable(SockOp):
    pass
