# PollOp: add_reader and add_writer, a callback for each time a descriptor is ready. Level-triggered as
# asyncio's selectors are: one poll in the kernel at a time, made again after each callback, so that a
# descriptor that is still ready is told again in the next turn. Touches no flag of the descriptor.
from cpython.object cimport PyObject, traverseproc, visitproc

from uringloop._core.engine cimport Engine
from uringloop._core.handle cimport Handle
from uringloop._core.kernel cimport (
    EAGAIN, EINTR, EPOLLERR, EPOLLHUP, IORING_OP_POLL_ADD, POLLIN, POLLOUT, c_poll, errno, io_uring_sqe, pollfd,
    uint32_t, ur_get_traverse, ur_set_traverse, ur_visit_owned,
)
from uringloop._core.loop cimport Loop
from uringloop._core.op cimport NEED_READ, NEED_WRITE, OP_IDLE, OP_IN_KERNEL, OP_QUEUED, Op


cdef class PollOp(Op):
    def __init__(self, Loop loop, int fd, bint write, handle):
        self.loop = loop
        self.engine = loop.engine
        self.fd = fd
        self.events = POLLOUT if write else POLLIN
        self.need = NEED_WRITE if write else NEED_READ
        self.repeatable = True
        self.handle = handle

    def arm(self):
        """Watch, from the end of this turn."""
        if self.state == OP_IDLE and not self.queued:
            self.engine.submit(self)

    def disarm(self):
        """Watch no longer; the callback does not run again, even if the descriptor has become ready."""
        refs, self.refs = self.refs, None
        if refs is not None:
            refs.unwatched()
        self.handle = None
        cdef bint in_kernel = self.state == OP_IN_KERNEL
        if in_kernel or self.state == OP_QUEUED:
            self.engine.cancel(self)
            if in_kernel or not self.loop.runner:
                # A poll keeps its file open: who closes it next expects that to take effect, to bind a listener's
                # address again for one.
                self.engine.flush_now()

    cdef void fill(self, io_uring_sqe *sqe) noexcept:
        sqe.opcode = IORING_OP_POLL_ADD
        sqe.fd = self.fd
        sqe.poll32_events = self.events

    cdef int attempt(self, uint32_t *flags) noexcept:
        cdef pollfd watched
        watched.fd = self.fd
        watched.events = <short> self.events
        watched.revents = 0
        cdef int count = c_poll(&watched, 1, 0)
        if count < 0:
            return -errno
        return watched.revents if count else -EAGAIN

    cdef void note(self, int res, uint32_t flags) noexcept:
        self.result = res

    cdef int run(self, object loop) except -1:
        cdef object handle = self.handle
        if handle is None or self.engine.closed:
            return 0
        try:
            (<Handle> handle).run(loop)
        finally:
            # A poll that failed (the descriptor was closed meanwhile) is over, as an epoll registration would be.
            if self.handle is not None and self.state == OP_IDLE and self.result >= 0:
                if self.refs is None or not self.refs.closed:
                    self.engine.submit(self)
        return 0

    cdef object culprit(self):
        return self.handle

    cdef str describe(self):
        return f"PollOp {'writer' if self.events == <uint32_t> POLLOUT else 'reader'}"

    cdef object whose(self):
        return self.handle


cdef traverseproc _traverse_fields = ur_get_traverse(PollOp)


cdef int _traverse(PyObject *self, visitproc visit, void *arg) noexcept:
    # A handle is nothing the collector knows: its owner shows what it refers to.
    cdef int result = ur_visit_owned(<PyObject *> (<PollOp> self).handle, visit, arg)
    return result or _traverse_fields(self, visit, arg)


ur_set_traverse(PollOp, <traverseproc> _traverse)
