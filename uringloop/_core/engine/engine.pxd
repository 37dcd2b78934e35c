from libc.stdint cimport int64_t, uint32_t, uint64_t

from uringloop._core.engine.op cimport Op, OpList
from uringloop._core.engine.ready_queue cimport ReadyQueue, Runnable
from uringloop._core.kernel.abi cimport io_uring_sqe
from uringloop._core.kernel.buffers cimport BufferPool


cdef enum:
    SCRATCH_SIZE = 262144


cdef long this_thread() noexcept nogil


cdef class Engine:
    cdef long thread                # the thread that attached it last; 0: none yet
    cdef readonly OpList ops        # operations that are queued or in the kernel
    cdef ReadyQueue ready           # the loop's: completed operations go there
    cdef ReadyQueue turn_end_queue  # the loop's queue for the end of a turn; None: no loop uses the engine
    cdef Runnable gathering         # an endpoint that gathers answers until all arrived data is delivered, or None
    cdef BufferPool pool            # the receive buffers, made on first use
    cdef char *scratch_memory       # NULL while it is taken, and until its first use
    cdef WakeOp wake_op
    cdef int wake_fd                # any thread writes to it; the number never changes while the engine is open
    cdef unsigned long lock_owner   # the thread that holds the engine's lock, or 0: a thread takes it to start to run the
                                    # loop, or to end operations of a loop that doesn't run
    cdef int forked                 # set in a child that inherited the engine: the kernel objects are the parent's
    cdef long in_workers             # operations in kernel workers that end by themselves, most of them soon
    cdef readonly bint closed
    cdef bint has_ring              # operations enter a ring; otherwise they are attempted
    cdef bint collected_early       # the next reap may find completions that are older than callbacks run since
    cdef readonly long submitted    # operations handed to the kernel
    cdef readonly long completed    # completions walked
    cdef readonly long sleeps
    cdef long wakes                 # counted by any thread, atomic
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
    cdef char *take_scratch(self) except NULL
    cdef void give_scratch(self, char *memory) noexcept
    cdef int pin(self, void *memory, size_t length, int *number) except? -1
    cdef void unpin(self, int number) noexcept
    cdef bint has_pinned(self, int number) noexcept
    cdef long system_calls(self) noexcept
    cdef void _close_wake_fd(self) noexcept


cdef unsigned long forks           # the number of forks between the process that first imported this module and this one


cdef class WakeOp(Op):
    cdef Engine engine
    cdef uint64_t count
