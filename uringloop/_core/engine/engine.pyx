# Engine: the interface between the loop and the kernel. Owns the list of operations in the kernel, the eventfd by which
# other threads wake it, and the pool of receive buffers. An engine takes operations (submit, cancel), waits in one place
# (sleep), and puts completed operations into the loop's ready queue (reap). It never runs a callback. The engines are in
# uring.pyx and epoll.pyx, and fake.pyx for tests.
import os
import weakref

from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from posix.unistd cimport usleep

from uringloop._core.engine.op cimport NEED_READ, Op, OpList
from uringloop._core.engine.ready_queue cimport ReadyQueue, Runnable
from uringloop._core.kernel.abi cimport IORING_OP_READ, io_uring_sqe
from uringloop._core.kernel.buffers cimport BufferPool
from uringloop._core.kernel.libc cimport EAGAIN, EFD_CLOEXEC, EFD_NONBLOCK, c_close, c_read, c_write, errno, eventfd
from uringloop._core.kernel.probe cimport sizes
from uringloop._core.lifetime.counters cimport COUNT_FD, count_freed, count_made
from uringloop._core.lifetime.guard cimport URINGLOOP_DEBUG, ur_add_long, ur_load_ulong, ur_store_ulong, ur_take_ulong


cdef extern from * nogil:
    """
    /* A number for the calling thread, which is never reused. The kernel may reuse the ID of a thread that has ended. */
    static inline long ur_this_thread(void) {
        static long given;
        static __thread long mine;
        if (!mine) mine = __atomic_add_fetch(&given, 1, __ATOMIC_RELAXED);
        return mine;
    }
    """
    long ur_this_thread()


cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept nogil


cdef long this_thread() noexcept nogil:
    return ur_this_thread()


cdef class Engine:
    """The base class of all engines."""

    def __init__(self, ReadyQueue ready):
        if self.wake_fd >= 0 or self.closed:
            raise RuntimeError(f"{type(self).__name__}.__init__() was called already")
        self.ready = ready
        self.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
        if self.wake_fd < 0:
            raise OSError(errno, os.strerror(errno))
        if URINGLOOP_DEBUG:
            count_made(COUNT_FD)
        _living.add(self)

    def __cinit__(self, *args, **options):
        self.ops = OpList()
        self.wake_fd = -1

    def __dealloc__(self):
        self._close_wake_fd()  # still open if __init__ of the subclass failed
        free(self.scratch_memory)

    cdef void _close_wake_fd(self) noexcept:
        if self.wake_fd >= 0:
            c_close(self.wake_fd)
            self.wake_fd = -1
            if URINGLOOP_DEBUG:
                count_freed(COUNT_FD)

    cdef bint acquire_lock(self) except -1:
        """Wait for the engine's lock. Return True if the caller has to release it, False if this thread held it before."""
        cdef unsigned long here = PyThread_get_thread_ident()
        if self.forked and ur_load_ulong(&self.lock_owner) != here:
            self.release_lock()  # the thread that held it doesn't exist in this process
        while not ur_take_ulong(&self.lock_owner, here):
            if ur_load_ulong(&self.lock_owner) == here:
                return False
            with nogil:
                usleep(100)
            PyErr_CheckSignals()
        return True

    cdef void release_lock(self) noexcept:
        ur_store_ulong(&self.lock_owner, 0)

    cdef int attach(self) except -1:
        """Attach the engine to the calling thread. The loop calls this whenever it starts to run."""
        self.thread = this_thread()
        if self.wake_op is None:
            self.wake_op = WakeOp(self)
            self.submit(self.wake_op)
        return 0

    cdef int attach_to_drain(self) except -1:
        """The same, but only to cancel all operations and sleep until they have ended."""
        return self.attach()

    cdef void leave(self) noexcept:
        """The calling thread, to which the engine is attached, stops running the loop; another thread may run it next."""

    cdef bint write_out(self) except -1:
        """The calling thread forks. If the engine is attached to it, transports hand the engine now what they would send
        later in this turn: otherwise a child that goes on with the loop would send it a second time. True if any did."""
        cdef PyObject *node
        cdef ReadyQueue queue
        cdef bint wrote = False
        cdef list waiting = [] if self.gathering is None else [self.gathering]
        if self.thread != this_thread() or self.forked or self.turn_end_queue is None:
            return False
        for queue in (self.ready, self.turn_end_queue):
            node = queue.head
            while node is not NULL:
                waiting.append(<object> node)
                node = (<Runnable> node).next
        for each in waiting:
            wrote |= (<Runnable> each).forking()
        return wrote

    cdef void before_fork(self) noexcept:
        """The calling thread forks. If the engine is attached to it, submit what is queued and collect what has completed:
        otherwise a child that goes on with the loop would submit it a second time, and miss the completions."""

    cdef void after_fork_in_child(self) noexcept:
        """In a forked child: the kernel objects belong to the parent, and must not be used any more. Makes no new ones,
        because few children go on with an inherited loop. A child that does, even in the same turn, attaches first."""
        self.forked = 1

    cdef int replace_eventfd(self) except -1:
        """Before a child runs the loop: replace the inherited eventfd by a new one with the same number. A shared eventfd
        would wake whichever process reads it first."""
        cdef int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
        if fd < 0:
            raise OSError(errno, os.strerror(errno))
        try:
            os.dup2(fd, self.wake_fd, False)
        finally:
            c_close(fd)
        for op in self.ops:
            (<Op> op).after_fork_in_child()
        return 0

    cdef int submit(self, Op op) except -1:
        """Take an operation, which enters the kernel with all others at the end of the turn. Never blocks, and never fails
        for lack of room in the ring."""
        raise NotImplementedError

    cdef int cancel(self, Op op) except -1:
        """Ask the kernel to cancel an operation, which stays in the kernel until its last completion."""
        raise NotImplementedError

    cdef bint has_work(self) noexcept:
        """Whether `poll` would submit or find anything. Makes no system call."""
        return False

    cdef bint only_completions(self) noexcept:
        """If `has_work` is true: whether `poll` would submit nothing, and only collect completions."""
        return False

    cdef int poll(self) except -1:
        """Submit what is queued and collect what has completed, without waiting."""
        raise NotImplementedError

    cdef int flush_now(self) except -1:
        """Submit what is queued before the turn ends, if the calling thread may."""
        return 0

    cdef int sleep(self, int64_t deadline_ns) except -1:
        """The same as `poll`, but wait for a completion, a wake or the deadline. The thread sleeps nowhere else."""
        raise NotImplementedError

    cdef bint peek(self) noexcept nogil:
        """Whether something has completed, or will when the kernel is entered. A thread that spins before it sleeps calls
        this repeatedly, after everything submitted has entered the kernel."""
        return False

    cdef int reap(self) except -1:
        """Move completed operations into the ready queue, without running them."""
        raise NotImplementedError

    cdef void wake(self) noexcept nogil:
        """End the sleep; called from any thread, or from a signal handler."""
        cdef uint64_t one = 1
        if self.forked or self.wake_fd < 0:
            return
        ur_add_long(&self.wakes, 1)
        # EAGAIN would mean that 2**64 - 2 wakes are pending: one more isn't needed.
        c_write(self.wake_fd, &one, sizeof(one))

    cdef int close(self) except -1:
        """Free all resources. All operations must have ended before."""
        self.closed = True
        self.wake_op = None
        if self.pool is not None:
            self.pool.close()
        self._close_wake_fd()
        return 0

    cdef BufferPool buffers(self):
        """The receive buffers, made by the first call: a loop without sockets has none."""
        if self.pool is None:
            self.pool = BufferPool(sizes().buffers, sizes().buffer_size)
        return self.pool

    cdef char *take_scratch(self) except NULL:
        """SCRATCH_SIZE bytes of temporary memory, which are the caller's until `give_scratch`."""
        cdef char *memory = self.scratch_memory
        self.scratch_memory = NULL
        if memory is NULL:
            memory = <char *> malloc(SCRATCH_SIZE)
            if memory is NULL:
                raise MemoryError
        return memory

    cdef void give_scratch(self, char *memory) noexcept:
        if self.scratch_memory is NULL:
            self.scratch_memory = memory
        else:
            free(memory)  # code that ran meanwhile took some, too

    cdef int pin(self, void *memory, size_t length, int *number) except? -1:
        """Let the ring pin memory, and set its `number` for entries; return 0, or -errno. The number stays -1 if the engine
        has no ring to pin it."""
        return 0

    cdef void unpin(self, int number) noexcept:
        """No transfer will use the memory any more; called from any thread."""

    cdef bint has_pinned(self, int number) noexcept:
        """Whether entries may use this number."""
        return False

    cdef long system_calls(self) noexcept:
        """The number of this engine's system calls to submit or wait."""
        return 0


cdef class WakeOp(Op):
    """Reads the eventfd: completes when another thread has written to it, and is then submitted again."""

    def __cinit__(self, Engine engine):
        self.engine = engine
        self.fd = engine.wake_fd
        self.need = NEED_READ
        self.repeatable = True

    cdef void fill(self, io_uring_sqe *sqe) noexcept:
        sqe.opcode = IORING_OP_READ
        sqe.fd = self.fd
        sqe.addr = <uint64_t> <uintptr_t> &self.count
        sqe.len = sizeof(self.count)

    cdef int attempt(self, uint32_t *flags) noexcept:
        cdef ssize_t got = c_read(self.fd, &self.count, sizeof(self.count))
        return -errno if got < 0 else <int> got

    cdef int run(self, object loop) except -1:
        if not self.engine.closed:
            self.engine.submit(self)
        return 0


_living = weakref.WeakSet()

forks = 0


def _before_fork():
    for engine in list(_living):
        wrote = True
        while wrote:  # a send that ends lets the next one go, and TLS within TLS encrypts what the inner one has written
            wrote = False
            try:
                wrote = (<Engine> engine).write_out()
            finally:
                (<Engine> engine).before_fork()


def _after_fork_in_child():
    # The eventfd and the ring are shared with the parent: the child must not write to the one, nor enter the other.
    global forks
    forks += 1
    for engine in list(_living):
        (<Engine> engine).after_fork_in_child()


os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
