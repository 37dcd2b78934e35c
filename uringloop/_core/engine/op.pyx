# Op and OpList: one operation in the kernel, and the list of all of them. Through its subclasses, an Op owns all memory
# that the kernel may touch for it; OpList makes all changes of its state. They never enter the kernel: an engine asks an
# Op to `fill` a submission entry, or to `attempt` itself as a plain non-blocking call, and passes each completion to
# OpList.completed.
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint32_t

from uringloop._core.engine.ready_queue cimport ReadyQueue, Runnable, ready_push_owned
from uringloop._core.kernel.abi cimport IORING_CQE_F_MORE, io_uring_sqe
from uringloop._core.kernel.libc cimport EINVAL
from uringloop._core.lifetime.counters cimport COUNT_OP, count_freed, count_made
from uringloop._core.lifetime.guard cimport URINGLOOP_DEBUG
from uringloop._core.lifetime.links cimport show_links

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
        """Write the submission entry, which is zeroed; the engine sets its user_data."""

    cdef int attempt(self, uint32_t *flags) noexcept:
        """Do the same as a non-blocking system call; return the result or -errno, -EAGAIN if it would block. Sets the
        completion's `flags`: the number of a provided buffer, and "more" if the operation goes on."""
        return -EINVAL

    cdef int block(self) noexcept nogil:
        """Do the same as a blocking call, in a worker thread; for NEED_THREAD operations."""
        return -EINVAL

    cdef int full_result(self) noexcept:
        """For quiet operations: the result of a full success."""
        return 0

    cdef void record_completion(self, int res, uint32_t flags) noexcept:
        """Store a completion. Called inside the completion walk, so no Python code may run. `run` follows, once for all
        completions stored since the last run."""

    cdef bint done_quietly(self) noexcept:
        """A quiet operation has fully succeeded. Return True if it must be run."""
        return False

    cdef object kernel_memory(self):
        """The memory that the kernel may still touch after its ring is gone. It is kept forever, because without the ring
        nothing reports when the operation has ended."""
        return self

    cdef int after_fork_in_child(self) except -1:
        """In a forked child that goes on with the loop: replace the kernel objects that it shares with the parent."""
        return 0

    cdef str describe(self):
        return type(self).__name__

    cdef object requester(self):
        """The object that the operation is for: a transport, a server, a handle, a future. None: the engine itself."""
        return None


cdef class OpMonitor:
    # The loop's thread calls these. They return False to receive no more reports.

    cdef bint op_submitted(self, Op op) noexcept:
        return False

    cdef bint op_ended(self, Op op) noexcept:
        """Called inside the completion walk, like `Op.record_completion`."""
        return False


cdef class OpList:
    def __len__(self):
        return self.count

    def __iter__(self):
        cdef PyObject *node
        ops = []  # made before the list is read: the allocation may let the loop's thread run
        node = self.head
        while node is not NULL:
            ops.append(<object> node)
            node = (<Op> node).next_in_kernel
        return iter(ops)

    cdef void submitted(self, Op op) noexcept:
        """idle -> queued: take the kernel's reference."""
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
        """queued or in kernel -> cancelling: the kernel keeps its reference until the last completion."""
        if URINGLOOP_DEBUG:
            assert op.state in (OP_QUEUED, OP_IN_KERNEL), "a cancel for an Op that is not in the kernel"
        op.state = OP_CANCELLING

    cdef void requeued(self, Op op) noexcept:
        """in kernel -> queued: its ring is gone, or never took its entry; it will be submitted again."""
        if URINGLOOP_DEBUG:
            assert op.state == OP_IN_KERNEL, "an Op was queued again that was not in the kernel"
        op.state = OP_QUEUED

    cdef void completed(self, Op op, int res, uint32_t flags, ReadyQueue ready) noexcept:
        """Process a completion. Without the more-flag it is the last, whatever its result: any state -> idle, and the ready
        queue takes over the kernel's reference (or that is dropped, if the queue already has one)."""
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
        """in kernel -> idle, for a quiet operation, whose success the kernel doesn't report. It is run only if `done_quietly`
        requests that. Return True if it is not run: the caller then has to drop the kernel's reference."""
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


# To the collector, the kernel's references belong to the engine, so it can find an unclosed loop with operations in the
# kernel. The loop's finaliser closes it, which drains the ring, before the collector clears any object.
show_links(OpList, &(<OpList> <PyObject *> OpList).head, &(<Op> <PyObject *> OpList).next_in_kernel)
