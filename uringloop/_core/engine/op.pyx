# Op: one operation in the kernel, and OpList: those that are there. Owns all that the kernel may touch
# on the operation's behalf (through its subclasses), and every change of its state. Never enters the
# kernel itself: an engine asks it to `fill` a submission entry, or to `attempt` itself as a plain
# non-blocking call, and hands each completion to OpList.completed.
from cpython.object cimport PyObject, traverseproc, visitproc
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint32_t

from uringloop._core.engine.ready cimport ReadyQueue, Runnable, ready_push_owned
from uringloop._core.kernel.abi cimport IORING_CQE_F_MORE, io_uring_sqe
from uringloop._core.kernel.libc cimport EINVAL
from uringloop._core.objects.counters cimport COUNT_OP, count_freed, count_made
from uringloop._core.objects.guard cimport URINGLOOP_DEBUG, ur_get_traverse, ur_set_traverse

_STATES = ("idle", "queued", "in kernel", "cancelling")


cdef class Op(Runnable):
    def __cinit__(self):
        self.fd = -1
        if URINGLOOP_DEBUG:
            count_made(COUNT_OP)

    def __dealloc__(self):
        if URINGLOOP_DEBUG:
            assert self.state == OP_IDLE, "an Op was freed while the kernel may still write to it"
            count_freed(COUNT_OP)

    def __repr__(self):
        return f"<{self.describe()} fd={self.fd} {_STATES[self.state]}>"

    @property
    def in_kernel(self):
        return self.state != OP_IDLE

    # For loop.operations().

    @property
    def kind(self):
        return self.describe()

    @property
    def state_name(self):
        return _STATES[self.state]

    @property
    def owned_by(self):
        return self.requester()

    cdef void fill(self, io_uring_sqe *sqe) noexcept:
        """Write the submission entry (zeroed before; user_data is the engine's)."""

    cdef int attempt(self, uint32_t *flags) noexcept:
        """The same as a non-blocking system call: the result or -errno, -EAGAIN when it would block.
        `flags` are the completion's: a provided buffer's number, and "more" if it goes on."""
        return -EINVAL

    cdef int block(self) noexcept nogil:
        """The same as a blocking call, for NEED_THREAD operations, in a worker thread."""
        return -EINVAL

    cdef int full_result(self) noexcept:
        """The result that is success in full, for quiet operations."""
        return 0

    cdef void record_completion(self, int res, uint32_t flags) noexcept:
        """Remember a completion; called inside the completion walk, so nothing of Python may run.
        `run` follows, once for all that was noted since."""

    cdef bint done_quietly(self) noexcept:
        """A quiet operation succeeded in full. True when it must be run."""
        return False

    cdef object kernel_memory(self):
        """What the kernel may still touch after the ring has gone, for ever: nobody learns when it has ended."""
        return self

    cdef int after_fork_in_child(self) except -1:
        """This process is a forked child, which goes on with the loop: replace what the kernel shares with the parent."""
        return 0

    cdef str describe(self):
        return type(self).__name__

    cdef object requester(self):
        """For whom it is: a transport, a server, a handle, the future somebody awaits. None: the engine itself."""
        return None


cdef class OpMonitor:
    # Told by the loop's thread. False: it does not want to know any more.

    cdef bint op_submitted(self, Op op) noexcept:
        return False

    cdef bint op_ended(self, Op op) noexcept:
        """Inside the completion walk, as `Op.record_completion`."""
        return False


cdef class OpList:
    def __len__(self):
        return self.count

    def __iter__(self):
        cdef PyObject *node
        ops = []  # before the first look: making it may let the loop's thread run
        node = self.head
        while node is not NULL:
            ops.append(<object> node)
            node = (<Op> node).next_in_kernel
        return iter(ops)

    cdef void submitted(self, Op op) noexcept:
        """idle -> queued: the kernel's reference is taken here."""
        if URINGLOOP_DEBUG:
            assert op.state == OP_IDLE, "an Op was submitted twice"
        Py_INCREF(op)
        op.state = OP_QUEUED
        op.prev_in_kernel = NULL
        op.next_in_kernel = self.head
        if self.head is not NULL:
            (<Op> self.head).prev_in_kernel = <PyObject *> op
        self.head = <PyObject *> op
        self.count += 1
        if self.monitor is not None and not self.monitor.op_submitted(op):
            self.monitor = None

    cdef void entered(self, Op op) noexcept:
        """queued -> in kernel: its entry is written."""
        if URINGLOOP_DEBUG:
            assert op.state == OP_QUEUED, "an entry was written for an Op that is not queued"
        op.state = OP_IN_KERNEL

    cdef void cancelling(self, Op op) noexcept:
        """queued or in kernel -> cancelling: nothing is given back yet."""
        if URINGLOOP_DEBUG:
            assert op.state in (OP_QUEUED, OP_IN_KERNEL), "a cancel for an Op that is not in the kernel"
        op.state = OP_CANCELLING

    cdef void requeued(self, Op op) noexcept:
        """in kernel -> queued: the ring it was in is gone, or never took its entry; another will get it."""
        if URINGLOOP_DEBUG:
            assert op.state == OP_IN_KERNEL, "an Op was queued again that was not in the kernel"
        op.state = OP_QUEUED

    cdef void completed(self, Op op, int res, uint32_t flags, ReadyQueue ready) noexcept:
        """A completion. Without the more-flag it is the last, whatever its result: any state
        -> idle, and the kernel's reference becomes the ready queue's (or is dropped if the queue has one)."""
        cdef bint last = not flags & IORING_CQE_F_MORE
        if last:
            self._unlink(op)
        op.record_completion(res, flags)
        if op.queued:
            if last:
                Py_DECREF(op)
            return
        if not last:
            Py_INCREF(op)
        ready_push_owned(ready, <PyObject *> op)

    cdef bint finished_quietly(self, Op op, ReadyQueue ready) noexcept:
        """in kernel -> idle, for an operation whose success the kernel was told not to report. It is run only if it says
        there is something to tell. True: it is not, and the kernel's reference is the caller's to drop."""
        self._unlink(op)
        if op.done_quietly() and not op.queued:
            ready_push_owned(ready, <PyObject *> op)
            return False
        return True

    cdef void _unlink(self, Op op) noexcept:
        if URINGLOOP_DEBUG:
            assert op.state != OP_IDLE, "a completion for an Op that is not in the kernel"
        if self.monitor is not None and not self.monitor.op_ended(op):
            self.monitor = None
        op.state = OP_IDLE
        if op.prev_in_kernel is not NULL:
            (<Op> op.prev_in_kernel).next_in_kernel = op.next_in_kernel
        else:
            self.head = op.next_in_kernel
        if op.next_in_kernel is not NULL:
            (<Op> op.next_in_kernel).prev_in_kernel = op.prev_in_kernel
        op.prev_in_kernel = op.next_in_kernel = NULL
        self.count -= 1


cdef traverseproc _traverse_fields = ur_get_traverse(OpList)


cdef int _traverse(PyObject *self, visitproc visit, void *arg) noexcept:
    # The kernel's references are the engine's for the collector: a loop dropped with operations in
    # the kernel is garbage like any other. Its finaliser closes it, which drains the ring, before
    # anything is taken apart.
    cdef PyObject *node = (<OpList> self).head
    cdef int result
    while node is not NULL:
        result = visit(node, arg)
        if result:
            return result
        node = (<Op> node).next_in_kernel
    return _traverse_fields(self, visit, arg)


ur_set_traverse(OpList, <traverseproc> _traverse)
