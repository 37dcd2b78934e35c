# UringEngine: the default engine, on io_uring. Owns the ring, the backlog of operations whose entries are not written
# yet, and the completion walk. Everything submitted in a turn enters the kernel in one system call, which also waits.
# A SINGLE_ISSUER ring belongs to one thread: when another thread runs the loop, the engine moves to a
# new ring.
import errno as errno_module
import os

from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.limits cimport LONG_MAX
from libc.stdint cimport uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, realloc
from posix.unistd cimport usleep

from uringloop._core.engine.engine cimport Engine, this_thread
from uringloop._core.engine.op cimport OP_CANCELLING, OP_IDLE, OP_IN_KERNEL, OP_QUEUED, Op
from uringloop._core.kernel.abi cimport (
    IORING_CQE_BUFFER_SHIFT, IORING_CQE_F_BUFFER, IORING_ENTER_ABS_TIMER, IORING_ENTER_NO_IOWAIT,
    IORING_OP_ASYNC_CANCEL, IORING_SETUP_DEFER_TASKRUN, IORING_SETUP_SINGLE_ISSUER, IORING_SETUP_TASKRUN_FLAG,
    IORING_SQ_CQ_OVERFLOW, IOSQE_CQE_SKIP_SUCCESS, io_uring_cqe, io_uring_sqe, ur_load_acquire, ur_load_relaxed,
    ur_now_ns, ur_store_release,
)
from uringloop._core.kernel.buffers cimport BufferPool
from uringloop._core.kernel.fixed_table cimport FixedTable
from uringloop._core.kernel.libc cimport EAGAIN, EBUSY, ECANCELED, EINTR, EINVAL, EMFILE, ENFILE, ENOMEM, ETIME
from uringloop._core.kernel.probe cimport KernelFeatures, kernel_features, restriction, ring_error, sizes
from uringloop._core.kernel.ring cimport (
    Ring, ring_close, ring_closed_at, ring_enable, ring_enter, ring_must_enter, ring_next, ring_open, ring_register, ring_unregister,
    ring_wants_enter,
)
from uringloop._core.lifetime.counters cimport COUNT_FD, count_freed, count_made
from uringloop._core.lifetime.guard cimport URINGLOOP_DEBUG

# Memory that an abandoned ring might still write to.
cdef list _orphans = []
# Engines that the collector has found with operations in the kernel.
cdef set _unclosed = set()

# Without TASKRUN_FLAG, a busy loop enters the kernel at least once in so many turns, to collect completions.
cdef unsigned BLIND_TURNS = 64

cdef enum:
    REGISTER_AFTER = 64     # enters before a run registers the ring: in a short run, the two calls cost more than they save
    TAKE_DOWN_NS = 100000000  # by then, the kernel has taken down a closed ring, and no longer counts its memory
    SLOW_TAKE_DOWN_NS = 1000000000  # the same on a busy machine, for a loop that has closed a ring to make another one
    END_WAIT_NS = 10000000  # one of several short waits: a process that is stopped meanwhile loses only one of them
    END_WAITS = 10
    END_ENTERS = 1000


cdef class UringEngine(Engine):
    def __cinit__(self, *args, **options):
        self.ring.fd = -1
        self.has_ring = True

    def __init__(self, ready, unsigned entries=0):
        Engine.__init__(self, ready)
        self.restrict = restriction()
        self.ring.sq_entries = entries or sizes().entries
        self._open()

    def __del__(self):
        # The loop's own finalizer closes the engine. If that failed, or has yet to run, the collector must not clear
        # objects whose memory the kernel may still write to.
        if self.ring.fd >= 0 and self.ops.count and not self.forked:
            _unclosed.add(self)

    def __dealloc__(self):
        # Only an engine that was never closed still has a ring here; no operation is in it any more.
        self._close_ring()
        free(self.backlog)
        free(self.quiet)
        free(self.quiet_at)

    def __repr__(self):
        return (f"<UringEngine fd={self.ring.fd} {self.ops.count} in kernel, {self.ring.sq_entries}+"
                f"{self.ring.cq_entries} entries, {self.ring.enters} enters>")

    cdef int _open(self) except -1:
        """Make a new ring, disabled until the thread that will run the loop enables it. If memory is short, try smaller
        rings before failing."""
        cdef KernelFeatures *found = kernel_features()
        cdef unsigned wanted = self.ring.sq_entries, entries = wanted, completions = max(sizes().completions, 2 * entries)
        cdef long enters = self.ring.enters
        cdef int err = ring_open(&self.ring, entries, completions, found.setup_flags)
        cdef int64_t patience = SLOW_TAKE_DOWN_NS if enters else TAKE_DOWN_NS
        while err == -ENOMEM and ur_now_ns() < ring_closed_at() + patience:
            with nogil:
                usleep(1000)
            err = ring_open(&self.ring, entries, completions, found.setup_flags)
        while err == -ENOMEM and (entries > 8 or completions > 4 * entries):
            entries = entries // 2 if entries > 8 else entries
            completions = 4 * entries
            err = ring_open(&self.ring, entries, completions, found.setup_flags)
        if err == 0 and self.restrict is not None:
            err = self.restrict(self.ring.fd)
        if err < 0:
            ring_close(&self.ring)
            self.ring.sq_entries = wanted  # the next run of the loop tries again
            raise ring_error(-err)
        self.ring.enters = enters
        if found.abs_timer:
            self.ring.enter_flags |= IORING_ENTER_ABS_TIMER
        if found.no_iowait:
            self.ring.enter_flags |= IORING_ENTER_NO_IOWAIT
        self.taskrun_visible = self.ring.setup_flags & IORING_SETUP_TASKRUN_FLAG != 0
        self.submitter = 0
        self.register_at = LONG_MAX
        free(self.quiet)
        free(self.quiet_at)
        self.quiet = <PyObject **> calloc(self.ring.sq_entries, sizeof(PyObject *))
        self.quiet_at = <unsigned *> calloc(self.ring.sq_entries, sizeof(unsigned))
        self.quiet_count = 0
        if self.quiet is NULL or self.quiet_at is NULL:
            raise MemoryError
        if URINGLOOP_DEBUG:
            count_made(COUNT_FD)
        return 0

    cdef void _close_ring(self) noexcept:
        if self.forked:
            self.ring.sqes_map = self.ring.cq_map = self.ring.rings_map = NULL  # not mapped in this process
        if URINGLOOP_DEBUG and self.ring.fd >= 0:
            count_freed(COUNT_FD)
        ring_close(&self.ring)
        self.submitter = 0  # no thread may enter a closed ring, even if no new one can be made

    cdef int attach(self) except -1:
        cdef long here = this_thread()
        cdef int err
        if self.forked:
            self.replace_eventfd()
        if self.forked or self.ring.fd < 0:
            self._move()
        elif self._has_other_submitter(here):
            if self.ring.setup_flags & IORING_SETUP_SINGLE_ISSUER:
                self._move()
            else:
                self._change_submitter(here)
        if not self.submitter:
            err = ring_enable(&self.ring)
            if err < 0:
                raise OSError(-err, f"io_uring_register: {os.strerror(-err)}")
            self.submitter = here
        self.register_at = self.ring.enters + REGISTER_AFTER if kernel_features().registered_ring else LONG_MAX
        return Engine.attach(self)

    cdef bint _has_other_submitter(self, long thread) noexcept:
        return self.submitter != 0 and thread != self.submitter

    cdef int attach_to_drain(self) except -1:
        """Only leave the ring of another thread: ending the operations needs no new ring."""
        if self.ring.fd < 0:
            return 0
        if self.ring.setup_flags & IORING_SETUP_SINGLE_ISSUER and self._has_other_submitter(this_thread()):
            return self._leave_ring()
        self.attach()
        self.register_at = LONG_MAX  # no `leave` follows
        return 0

    cdef int _leave_ring(self) except -1:
        if not self.forked and self.ring.fd >= 0:
            self._walk()
            if self.ring.cq_head[0] != ur_load_acquire(self.ring.cq_tail):
                self._walk()
            self._requeue_unsubmitted()
        self._close_ring()
        if self.pool is not None:
            self.pool.forget_ring(not self.forked)
        return 0

    cdef int _requeue_unsubmitted(self) except -1:
        """Queue operations again whose entries the kernel never took."""
        cdef unsigned at = ur_load_acquire(self.ring.sq_head), end = self.ring.sq_tail[0] + self.ring.filled
        cdef uintptr_t entry
        while at != end:
            entry = <uintptr_t> self.ring.sqes[at & self.ring.sq_mask].user_data
            at += 1
            if entry:
                self._push_backlog(entry)
                if (<Op> <PyObject *> entry).state == OP_IN_KERNEL:
                    self.ops.requeued(<Op> <PyObject *> entry)
        self.quiet_count = 0
        return 0

    cdef int _move(self) except -1:
        """Leave the ring of another thread (or of the parent process) for a new one.

        With DEFER_TASKRUN the kernel works on socket operations only while their thread enters, so none can have
        consumed data since that thread left: repeatable operations are submitted again. The others (file operations
        in kernel workers that took longer than `leave` waits) complete with ECANCELED, and their memory is kept
        forever, because nothing reports when the old ring has written for the last time."""
        self._leave_ring()
        self._open()
        self.forked = 0
        self._resubmit_all(False)
        if self.pool is not None and kernel_features().buffer_ring:
            self.pool.register(self.ring.fd)  # if that fails, receives work without the buffer ring
        if self.fixed is not None:
            self.fixed.moved(self.ring.fd)
        return 0

    cdef int _resubmit_all(self, bint none) except -1:
        """Put the operations of the ring that is gone into the backlog of the new one; with `none`, end all of them."""
        cdef Op op
        cdef Py_ssize_t i
        unseen = {self.backlog[i] for i in range(self.backlog_count)}  # entries and cancel requests not in the old ring
        self.backlog_count = 0
        for op in reversed(list(self.ops)):
            if none or op.state == OP_CANCELLING or not (op.repeatable or op.state == OP_QUEUED):
                if not op.repeatable and <uintptr_t> <PyObject *> op not in unseen:
                    _orphans.append(op.kernel_memory())
                    op.result_unknown = True
                self.ops.completed(op, -ECANCELED, 0, self.ready)
                continue
            if op.state == OP_IN_KERNEL:
                self.ops.requeued(op)
            self._push_backlog(<uintptr_t> <PyObject *> op)
        return 0

    cdef void _change_submitter(self, long thread) noexcept:
        """Without SINGLE_ISSUER, the other thread takes over the ring. Leaving the ring would lose data: the kernel may
        complete a receive at any moment, even after the last walk."""
        self.submitter = thread
        self.had_submitters = True

    cdef void leave(self) noexcept:
        # Only this thread can fetch completions that the queue had no room for.
        if self.submitter and not self.forked:
            self.collected_early = True
            self.reap()
            if self.in_workers and self.ring.setup_flags & IORING_SETUP_SINGLE_ISSUER:
                self._wait_for_workers()
            # Only this thread can free its slot, and it may live on while another one runs the loop or closes it.
            ring_unregister(&self.ring)
        self.register_at = LONG_MAX

    cdef void _wait_for_workers(self) noexcept:
        """Give kernel workers the time that a local filesystem needs to finish: if another thread runs or closes the loop
        next, the results of their reads, writes and opens would be lost."""
        cdef int ret, entered = 0, waited = 0
        while self.in_workers and waited < END_WAITS and entered < END_ENTERS:
            entered += 1
            with nogil:
                ret = ring_enter(&self.ring, 1, ur_now_ns() + END_WAIT_NS)
            self._walk()
            if ret == -ETIME:
                waited += 1
            elif ret < 0:
                break

    cdef bint _resubmit(self, Op op) noexcept:
        """The kernel has cancelled an operation although we didn't ask: the thread that submitted it has ended. Submit it
        again if it is repeatable; otherwise return False, and the operation gets the error."""
        if op.state != OP_IN_KERNEL or not op.repeatable or self.closed:
            return False
        try:
            self._push_backlog(<uintptr_t> <PyObject *> op)
        except MemoryError:
            return False
        self.ops.requeued(op)
        return True

    cdef int submit(self, Op op) except -1:
        self._push_backlog(<uintptr_t> <PyObject *> op)
        self.ops.submitted(op)
        return 0

    cdef int cancel(self, Op op) except -1:
        if op.state == OP_IN_KERNEL:
            # The entry names the operation by its address. If the operation ends before the kernel reads the entry, the
            # kernel finds no operation at that address: one that reuses the address is submitted after this entry.
            self._push_backlog(<uintptr_t> <PyObject *> op | 1)
        if op.state == OP_IN_KERNEL or op.state == OP_QUEUED:
            self.ops.cancelling(op)
        return 0

    cdef int _push_backlog(self, uintptr_t entry) except -1:
        cdef uintptr_t *larger
        if self.closed:
            raise RuntimeError("Event loop is closed")
        if self.backlog_count == self.backlog_size:
            self.backlog_size = self.backlog_size * 2 if self.backlog_size else 64
            larger = <uintptr_t *> realloc(self.backlog, self.backlog_size * sizeof(uintptr_t))
            if larger is NULL:
                raise MemoryError
            self.backlog = larger
        self.backlog[self.backlog_count] = entry
        self.backlog_count += 1
        return 0

    cdef bint has_work(self) noexcept:
        if self.backlog_count or ring_wants_enter(&self.ring):
            return True
        if self.ring.cq_head[0] != ur_load_acquire(self.ring.cq_tail):
            return True
        if self.taskrun_visible:
            return False
        self.blind_turns += 1
        return self.blind_turns >= BLIND_TURNS

    cdef bint only_completions(self) noexcept:
        # Don't postpone parked completions: each turn may park more.
        return self.backlog_count == 0 and not ring_must_enter(&self.ring)

    cdef bint _fill(self) except -1:
        """Write entries for the backlog until the queue is full. True when all of it is written."""
        cdef Py_ssize_t done = 0
        cdef uintptr_t entry
        cdef io_uring_sqe *sqe
        cdef Op op
        while done < self.backlog_count:
            entry = self.backlog[done]
            if not entry & 1 and (<Op> <PyObject *> entry).state == OP_CANCELLING:
                # Cancelled before it entered the kernel.
                self.ops.completed(<Op> <PyObject *> entry, -ECANCELED, 0, self.ready)
                done += 1
                continue
            sqe = ring_next(&self.ring)
            if sqe is NULL:
                break
            done += 1
            self.submitted += 1
            if entry & 1:
                sqe.opcode = IORING_OP_ASYNC_CANCEL
                sqe.flags = IOSQE_CQE_SKIP_SUCCESS
                sqe.fd = -1
                sqe.addr = entry & ~<uintptr_t> 1
                continue
            op = <Op> <PyObject *> entry
            op.fill(sqe)
            sqe.user_data = entry
            self.ops.entered(op)
            if op.quiet:
                sqe.flags |= IOSQE_CQE_SKIP_SUCCESS
                self.quiet[self.quiet_count] = <PyObject *> op
                self.quiet_at[self.quiet_count] = self.ring.sq_tail[0] + self.ring.filled - 1
                self.quiet_count += 1
        self.backlog_count -= done
        if self.backlog_count:
            for i in range(self.backlog_count):
                self.backlog[i] = self.backlog[done + i]
            return False
        return True

    cdef int poll(self) except -1:
        return self._enter(False, 0)

    cdef int flush_now(self) except -1:
        self.collected_early = True
        if self.submitter and not self.forked and self.submitter == this_thread():
            self._enter(False, 0)
        return 0

    cdef void before_fork(self) noexcept:
        cdef int ret = 0
        cdef bint all_written = False
        if not self.submitter or self.forked or self.submitter != this_thread():
            return
        self.collected_early = True
        while ret >= 0 and not all_written:  # like `_enter`, but without signal handlers: their exceptions would be lost
            all_written = self._fill()
            with nogil:
                ret = ring_enter(&self.ring, 0, 0)
            self.reap()

    cdef void after_fork_in_child(self) noexcept:
        Engine.after_fork_in_child(self)
        self._close_ring()  # the child's descriptor would keep the parent's ring alive
        self.quiet_count = 0
        self.taskrun_visible = False
        self.register_at = LONG_MAX
        if self.pool is not None:
            self.pool.forget_ring(False)

    cdef int sleep(self, int64_t deadline_ns) except -1:
        if self.ring.fd < 0 and not self.forked:
            return self._resubmit_all(True)  # attach_to_drain has left the ring: end all operations
        self.sleeps += 1
        return self._enter(True, deadline_ns)

    cdef int _enter(self, bint wait, int64_t deadline_ns) except -1:
        cdef int ret
        cdef bint all_written
        if self.fixed is not None and self.fixed.left and not self.forked:
            self.fixed.sweep()
        if self.forked:
            self.attach()
            wait = False  # a wake before this could not write to the eventfd
        if self.ring.enters >= self.register_at:
            self.register_at = LONG_MAX
            ring_register(&self.ring)
        while True:
            all_written = self._fill()
            # Don't sleep if `_fill` has completed cancelled operations, or if entries are still to be written.
            if not all_written or self.ready.count:
                wait = False
            with nogil:
                ret = ring_enter(&self.ring, 1 if wait else 0, deadline_ns)
            self.blind_turns = 0
            if ret < 0 and ret not in (-EINTR, -ETIME, -EAGAIN, -EBUSY):
                raise OSError(-ret, f"io_uring_enter: {os.strerror(-ret)}")
            if not all_written or self.quiet_count:
                self.reap()
            if all_written:
                break
        # A signal ends the wait; its Python handler runs here, before the thread can sleep again.
        PyErr_CheckSignals()
        return 0

    cdef int reap(self) except -1:
        cdef int ret
        if self.ring.fd < 0:
            return 0
        self._walk()
        while ur_load_relaxed(self.ring.sq_flags) & IORING_SQ_CQ_OVERFLOW:
            # The kernel has parked completions that the queue had no room for: entering moves them into the queue.
            self.overflows += 1
            with nogil:
                ret = ring_enter(&self.ring, 0, 0)
            self._walk()
            if ret < 0 and ret not in (-EINTR, -EAGAIN, -EBUSY):
                break
        if self.quiet_count:
            self._settle_quiet()
        self.collected_early = False
        return 0

    cdef void _walk(self) noexcept:
        """Pass each completion to its operation, then advance the head once. No Python code may run in here, because it
        could submit, close, or enter again."""
        cdef unsigned head = self.ring.cq_head[0]
        cdef unsigned tail = ur_load_acquire(self.ring.cq_tail)
        cdef io_uring_cqe *cqe
        self.completed += tail - head
        while head != tail:
            cqe = &self.ring.cqes[head & self.ring.cq_mask]
            head += 1
            if cqe.user_data == 0:
                continue  # a cancel request that found nothing to cancel
            if cqe.flags & IORING_CQE_F_BUFFER:
                self.pool.mark_delivered(cqe.flags >> IORING_CQE_BUFFER_SHIFT)
            if self.had_submitters and cqe.res == -ECANCELED and self._resubmit(<Op> <PyObject *> <uintptr_t> cqe.user_data):
                continue
            self.ops.completed(<Op> <PyObject *> <uintptr_t> cqe.user_data, cqe.res, cqe.flags, self.ready)
        ur_store_release(self.ring.cq_head, head)

    cdef void _settle_quiet(self) noexcept:
        """Finish the quiet operations whose entries the kernel consumed without a completion: they have succeeded.

        A completion would be visible by now: quiet operations end within the submitting call (MSG_DONTWAIT), which posts
        failures before it returns; and no completion is parked, since `reap` has fetched them."""
        cdef unsigned consumed = ur_load_acquire(self.ring.sq_head)
        cdef Py_ssize_t i, kept = 0
        cdef PyObject *over = NULL
        cdef PyObject *node
        for i in range(self.quiet_count):
            node = self.quiet[i]
            if <int> (consumed - self.quiet_at[i]) <= 0:
                self.quiet[kept] = node
                self.quiet_at[kept] = self.quiet_at[i]
                kept += 1
            elif (<Op> node).state != OP_IDLE and self.ops.finished_quietly(<Op> node, self.ready):
                if (<Op> node).queued:
                    Py_DECREF(<object> node)  # not the last reference
                else:
                    (<Op> node).next = over
                    over = node
        self.quiet_count = kept
        while over is not NULL:
            # Only now, because freeing an operation may free other objects, and run code that submits and enters.
            node = over
            over = (<Op> node).next
            Py_DECREF(<object> node)

    cdef bint peek(self) noexcept nogil:
        return ring_wants_enter(&self.ring) or self.ring.cq_head[0] != ur_load_acquire(self.ring.cq_tail)

    cdef BufferPool buffers(self):
        if self.pool is None:
            Engine.buffers(self)
            if kernel_features().buffer_ring:
                self.pool.register(self.ring.fd)
        return self.pool

    cdef int pin(self, void *memory, size_t length, int *number) except? -1:
        if not kernel_features().fixed_buffers or self.ring.fd < 0:
            return 0
        if self.fixed is None:
            self.fixed = FixedTable()
        return self.fixed.add(self.ring.fd, memory, length, number)

    cdef void unpin(self, int number) noexcept:
        if self.fixed is not None:
            self.fixed.leave(number)
            if self.submitter == this_thread() and not self.forked and self.ring.fd >= 0:
                self.fixed.sweep()

    cdef bint has_pinned(self, int number) noexcept:
        return self.fixed is not None and self.ring.fd >= 0 and not self.forked and self.fixed.has(number)

    cdef int close(self) except -1:
        if self.closed:
            return 0
        self._close_ring()
        _unclosed.discard(self)
        return Engine.close(self)

    cdef long system_calls(self) noexcept:
        return self.ring.enters
