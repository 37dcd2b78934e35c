from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint32_t, uint8_t

from uringloop._core.engine.ready_queue cimport ReadyQueue, Runnable
from uringloop._core.kernel.abi cimport io_uring_sqe


cdef enum OpState:
    OP_IDLE         # the kernel doesn't know it: it may be submitted or freed
    OP_QUEUED       # submitted to the engine, which writes its entry when it next enters the kernel
    OP_IN_KERNEL    # the memory that it points to must stay as it is
    OP_CANCELLING   # the same, and a cancel request is on its way; only its last completion ends it


cdef enum OpNeed:
    # How an engine without a ring runs it:
    NEED_READ       # attempt it when the descriptor is readable
    NEED_WRITE      # attempt it when the descriptor is writable
    NEED_NOTHING    # attempt it at once: it never blocks
    NEED_THREAD     # run it in a worker thread: it blocks


cdef class Op(Runnable):
    # Only the loop's thread uses these fields.
    cdef readonly int fd
    cdef uint8_t state         # OpState
    cdef uint8_t need          # OpNeed
    cdef bint multishot        # stays in the kernel after a completion that says "more"
    cdef bint repeatable       # may be submitted again when its loop moves to another thread
    cdef bint result_unknown   # its ring is gone, and its outcome with it: the result means nothing
    cdef bint quiet            # it ends within the enter that submits it, and posts a completion only on failure
    cdef int attempt_limit     # the most bytes that an attempt may move, for the fake engine; 0: no limit
    cdef PyObject *prev_in_kernel
    cdef PyObject *next_in_kernel

    cdef void fill(self, io_uring_sqe *sqe) noexcept
    cdef int attempt(self, uint32_t *flags) noexcept
    cdef void record_completion(self, int res, uint32_t flags) noexcept
    cdef int block(self) noexcept nogil
    cdef int full_result(self) noexcept
    cdef bint done_quietly(self) noexcept
    cdef object kernel_memory(self)
    cdef int after_fork_in_child(self) except -1
    cdef str describe(self)
    cdef object requester(self)


cdef class OpMonitor:
    # An OpList reports its operations to this (monitor.pyx).
    cdef bint op_submitted(self, Op op) noexcept
    cdef bint op_ended(self, Op op) noexcept


cdef class OpList:
    # The ops in the kernel. The list holds one reference to each, from submit to the last completion.
    cdef PyObject *head
    cdef readonly Py_ssize_t count
    cdef OpMonitor monitor    # None: no observer
    cdef object _gc

    cdef void submitted(self, Op op) noexcept
    cdef void entered(self, Op op) noexcept
    cdef void cancelling(self, Op op) noexcept
    cdef void requeued(self, Op op) noexcept
    cdef void completed(self, Op op, int res, uint32_t flags, ReadyQueue ready) noexcept
    cdef bint finished_quietly(self, Op op, ReadyQueue ready) noexcept
    cdef void _unlink(self, Op op) noexcept
