from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint32_t, uint8_t

from uringloop._core.engine.ready cimport ReadyQueue, Runnable
from uringloop._core.kernel.abi cimport io_uring_sqe


cdef enum OpState:
    OP_IDLE         # the kernel knows nothing of it: may be submitted, or freed
    OP_QUEUED       # submitted to the engine; its entry is written when the engine next enters the kernel
    OP_IN_KERNEL    # everything it points to stays as it is
    OP_CANCELLING   # the same, and a cancel request is on its way; only a last completion ends it


cdef enum OpNeed:
    NEED_READ       # where there is no ring: attempt when the descriptor is readable
    NEED_WRITE      # ... when it is writable
    NEED_NOTHING    # attempting never blocks
    NEED_THREAD     # attempting blocks: a worker thread's work


cdef class Op(Runnable):
    # All fields: the loop's thread only.
    cdef readonly int fd
    cdef uint8_t state         # OpState
    cdef uint8_t need          # OpNeed
    cdef bint multishot        # stays in the kernel after a completion that says "more"
    cdef bint repeatable       # may be submitted again when its loop moves to another thread
    cdef bint result_unknown   # its ring is gone, and nobody knows what became of it: the result tells nothing
    cdef bint quiet            # ends within the enter that submits it, and success posts no completion
    cdef int attempt_limit     # bytes an attempt may move at once, 0: as many as there are; the fake engine's
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
    # What an OpList tells of its operations to (watch.pyx).
    cdef bint op_submitted(self, Op op) noexcept
    cdef bint op_ended(self, Op op) noexcept


cdef class OpList:
    # The ops that are in the kernel: one reference each, taken at submit, dropped at the last completion.
    cdef PyObject *head
    cdef readonly Py_ssize_t count
    cdef OpMonitor monitor    # None: nobody looks
    cdef object _gc

    cdef void submitted(self, Op op) noexcept
    cdef void entered(self, Op op) noexcept
    cdef void cancelling(self, Op op) noexcept
    cdef void requeued(self, Op op) noexcept
    cdef void completed(self, Op op, int res, uint32_t flags, ReadyQueue ready) noexcept
    cdef bint finished_quietly(self, Op op, ReadyQueue ready) noexcept
    cdef void _unlink(self, Op op) noexcept
