from libc.stdint cimport int64_t, uint32_t, uint64_t

from uringloop._core.engine.op cimport Op, OpList
from uringloop._core.engine.ready cimport ReadyQueue, Runnable
from uringloop._core.kernel.abi cimport io_uring_sqe
from uringloop._core.kernel.buffers cimport BufferPool


cdef enum:
    SCRATCH_SIZE = 262144


cdef long this_thread() noexcept nogil


cdef class Engine:
    cdef long thread                # that attached it last; 0: none yet
    cdef readonly OpList ops        # in the kernel, or queued to be
    cdef ReadyQueue ready           # the loop's: completed operations go there
    cdef ReadyQueue turn_end_queue  # the loop's, with what runs when its turn ends; None: no loop has it
    cdef Runnable gathering         # an endpoint whose answers wait until all that arrived is delivered, or None
    cdef BufferPool pool            # where receives put what arrives; made when first asked for
    cdef char *scratch_memory       # NULL until it is first asked for
    cdef WakeOp wake_op
    cdef int wake_fd                # written by any thread; the number never changes while the engine is open
    cdef unsigned long lock_owner   # 0, or the thread that holds it: held by a thread that begins to run the loop, or ends operations of one that does not run
    cdef int forked                 # set in a child that inherited the engine: its kernel half is the parent's
    cdef long in_workers             # operations with kernel workers that end by themselves, most at once
    cdef readonly bint closed
    cdef bint has_ring              # operations enter a ring; otherwise they are attempted
    cdef bint collected_early       # what the next reap finds may have completed before callbacks that ran since
    cdef readonly long submitted    # operations handed to the kernel
    cdef readonly long completed    # completions walked
    cdef readonly long sleeps
    cdef long wakes                 # from any thread, atomic
    cdef object __weakref__

    cdef bint acquire_lock(self) except -1
    cdef void release_lock(self) noexcept
    cdef int attach(self) except -1
    cdef int attach_to_drain(self) except -1
    cdef void leave(self) noexcept
    cdef bint write_out(self) except -1
    cdef void before_fork(self) noexcept
    cdef void after_fork_in_child(self) noexcept
    cdef int replace_eventfd(self) except -1
    cdef int submit(self, Op op) except -1
    cdef int cancel(self, Op op) except -1
    cdef bint has_work(self) noexcept
    cdef bint only_completions(self) noexcept
    cdef int poll(self) except -1
    cdef int flush_now(self) except -1
    cdef int sleep(self, int64_t deadline_ns) except -1
    cdef bint peek(self) noexcept nogil
    cdef int reap(self) except -1
    cdef void wake(self) noexcept nogil
    cdef int close(self) except -1
    cdef BufferPool buffers(self)
    cdef char *scratch(self) except NULL
    cdef int pin(self, void *memory, size_t length, int *number) except? -1
    cdef void unpin(self, int number) noexcept
    cdef bint has_pinned(self, int number) noexcept
    cdef long system_calls(self) noexcept
    cdef void _close_wake_fd(self) noexcept


cdef unsigned long forks           # of this process's, from the first one that imported this module, to here


cdef class WakeOp(Op):
    cdef Engine engine
    cdef uint64_t count
