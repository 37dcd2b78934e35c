# AcceptOp: the accept operation of one listening socket. Owns accepted descriptors until a transport or the listener
# takes them. net/servers.py sets up the connections, and handles a lack of resources.
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t
from libc.stdlib cimport free, realloc

from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.op cimport NEED_READ, OP_IDLE, OP_IN_KERNEL, OP_QUEUED, Op
from uringloop._core.engine.ready_queue cimport ready_push
from uringloop._core.engine.uring cimport UringEngine
from uringloop._core.kernel.abi cimport IORING_ACCEPT_MULTISHOT, IORING_CQE_F_MORE, IORING_OP_ACCEPT, io_uring_sqe
from uringloop._core.kernel.libc cimport (
    EAGAIN, ECANCELED, ECONNABORTED, EINTR, EINVAL, SOCK_CLOEXEC, SOCK_NONBLOCK, c_accept4, c_close, errno,
)
from uringloop._core.kernel.probe cimport kernel_features
from uringloop._core.loop.loop cimport Loop


cdef class AcceptOp(Op):
    def __cinit__(self, Loop loop, int fd, listener):
        self.engine = loop.engine
        self.fd = fd
        self.listener = listener
        self.need = NEED_READ
        self.repeatable = True
        self.multishot = isinstance(self.engine, UringEngine) and kernel_features().multishot_accept

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.count):
            c_close(self.accepted[i])
        free(self.accepted)

    def start(self):
        if self.state == OP_IDLE and not self.queued:
            self.engine.submit(self)

    def stop(self, late=None):
        """Stop accepting. Connections that the kernel has already accepted go to `late`, or are closed."""
        if self.listener is None:
            return
        self.listener = None
        self.late = late
        if self.state == OP_IN_KERNEL or self.state == OP_QUEUED:
            self.engine.cancel(self)
            # Now: the port is only free when the kernel has ended the operation, and the caller may bind it again at once.
            self.engine.flush_now()

    cdef void fill(self, io_uring_sqe *sqe) noexcept:
        sqe.opcode = IORING_OP_ACCEPT
        sqe.fd = self.fd
        sqe.accept_flags = SOCK_CLOEXEC | SOCK_NONBLOCK
        if self.multishot:
            sqe.ioprio = IORING_ACCEPT_MULTISHOT

    cdef int attempt(self, uint32_t *flags) noexcept:
        cdef int fd = c_accept4(self.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)
        if fd < 0:
            return -errno
        flags[0] = IORING_CQE_F_MORE
        return fd

    cdef void record_completion(self, int res, uint32_t flags) noexcept:
        if res >= 0:
            self._store_accepted(res)
        elif not flags & IORING_CQE_F_MORE:
            self.error = -res
        if not flags & IORING_CQE_F_MORE:
            self.ended = True

    cdef void _store_accepted(self, int fd) noexcept:
        cdef int *larger
        if self.count == self.size:
            larger = <int *> realloc(self.accepted, (2 * self.size + 16) * sizeof(int))
            if larger is NULL:
                c_close(fd)  # without memory for a number, there is none for a connection either
                return
            self.accepted = larger
            self.size = 2 * self.size + 16
        self.accepted[self.count] = fd
        self.count += 1

    cdef int run(self, object loop) except -1:
        cdef Py_ssize_t i, count = self.count
        cdef int fd
        try:
            for i in range(count):
                fd, self.accepted[i] = self.accepted[i], -1
                if self.late is not None:
                    self.late(fd)
                elif self.listener is None or self.engine.closed:
                    c_close(fd)
                else:
                    self.listener.connected(fd)
        except BaseException:
            # The exception leaves the loop (KeyboardInterrupt): take the rest when the loop runs again.
            if not self.queued:
                ready_push(self.engine.ready, self)
            raise
        finally:
            left = [self.accepted[i] for i in range(self.count) if self.accepted[i] >= 0]
            self.count = len(left)
            for i in range(self.count):
                self.accepted[i] = left[i]
        if self.ended:
            self.ended = False
            self._end(loop)
        return 0

    cdef object culprit(self):
        return self.listener

    cdef object requester(self):
        return self.listener

    cdef int _end(self, object loop) except -1:
        cdef int error = self.error
        self.error = 0
        if self.listener is None:
            self.late = None
            return 0
        if error == EINVAL and self.multishot:
            self.multishot = False
        elif error and error not in (EAGAIN, EINTR, ECONNABORTED, ECANCELED):
            self.listener.failed(error)
            return 0
        if self.listener.fileno() == self.fd:  # otherwise it was closed, and another file may have the number
            self.start()
        return 0
