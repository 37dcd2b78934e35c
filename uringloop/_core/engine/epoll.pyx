# EpollEngine: the engine for systems that refuse io_uring. The loop and the operations are the same: each operation is
# attempted as a plain non-blocking call, waits in epoll for readiness if it would block, and completes in the same way.
# Operations without readiness (on files) run in worker threads. Owns the epoll descriptor and the lists of operations
# that wait for each descriptor.
import os
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future
from concurrent.futures import wait as wait_for

from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport Py_DECREF

from uringloop._core.engine.workers import Workers

from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t

from uringloop._core.engine.engine cimport Engine, this_thread
from uringloop._core.engine.op cimport (
    NEED_THREAD, NEED_WRITE, OP_CANCELLING, OP_IDLE, OP_IN_KERNEL, OP_QUEUED, Op,
)
from uringloop._core.kernel.abi cimport IORING_CQE_BUFFER_SHIFT, IORING_CQE_F_BUFFER, IORING_CQE_F_MORE, ur_now_ns
from uringloop._core.kernel.libc cimport (
    EAGAIN, EBADF, ECANCELED, EEXIST, EINTR, ENOENT, ENOSYS, EPERM, EPOLLERR, EPOLLHUP, EPOLLIN, EPOLLOUT,
    EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, c_close, epoll_create1, epoll_ctl, epoll_event,
    epoll_wait, errno,
)
from uringloop._core.lifetime.counters cimport COUNT_FD, count_freed, count_made
from uringloop._core.lifetime.guard cimport URINGLOOP_DEBUG

cdef extern from * nogil:
    """
    #include <sys/epoll.h>
    #include <sys/syscall.h>
    #ifndef SYS_epoll_pwait2
    #define SYS_epoll_pwait2 441
    #endif
    static inline int ur_epoll_pwait2(int fd, struct epoll_event *events, int most, const struct timespec *ts) {
        return (int)syscall(SYS_epoll_pwait2, fd, events, most, ts, NULL, 0);
    }
    """
    struct timespec:
        long tv_sec
        long tv_nsec
    int ur_epoll_pwait2(int fd, epoll_event *events, int most, const timespec *ts)

cdef enum:
    EVENTS_A_WAIT = 256
    BLIND_TURNS = 16
    SHOTS_A_TURN = 16  # attempts of one multishot operation per turn, so that others get their turn


cdef class FdWaiters:
    def __cinit__(self, int fd):
        self.fd = fd
        self.readers = []
        self.writers = []


cdef class EpollEngine(Engine):
    def __cinit__(self, *args, **options):
        self.epoll_fd = -1

    def __init__(self, ready, unsigned entries=0):
        Engine.__init__(self, ready)
        self.epoll_fd = epoll_create1(EPOLL_CLOEXEC)
        if self.epoll_fd < 0:
            raise OSError(errno, os.strerror(errno))
        if URINGLOOP_DEBUG:
            count_made(COUNT_FD)
        self.waiters_by_fd = {}
        self.backlog = []
        self.changed = []
        self.settled = []
        self.finished = deque()
        self.running = {}

    def __dealloc__(self):
        self._close_epoll()

    cdef void _close_epoll(self) noexcept:
        if self.epoll_fd >= 0:
            c_close(self.epoll_fd)
            self.epoll_fd = -1
            if URINGLOOP_DEBUG:
                count_freed(COUNT_FD)

    def __repr__(self):
        return f"<EpollEngine fd={self.epoll_fd} {self.ops.count} waiting, {self.enters} waits>"

    cdef int attach(self) except -1:
        if self.forked:
            # The epoll is shared with the parent: registrations here would change the parent's.
            self.replace_eventfd()
            self._renew()
            self.forked = 0
            self._end_running()
        return Engine.attach(self)

    cdef int _end_running(self) except -1:
        """In a forked child: cancel the operations in worker threads, which exist only in the parent."""
        self.workers = None
        ended = {job[0] for job in self.finished}
        for op in self.running:
            if op not in ended:
                self.settle(op, -ECANCELED, 0)
        self.running.clear()
        return 0

    cdef void before_fork(self) noexcept:
        if self.thread == this_thread() and not self.forked and not self.closed:
            self.flush()

    cdef int _renew(self) except -1:
        """Replace the epoll by a new one, with all registrations."""
        cdef FdWaiters waiters
        cdef int fd = epoll_create1(EPOLL_CLOEXEC)
        if fd < 0:
            if not self.forked:
                return 0  # out of descriptors; the next stray event tries again
            raise OSError(errno, os.strerror(errno))
        c_close(self.epoll_fd)
        self.epoll_fd = fd
        for waiters in self.waiters_by_fd.values():
            waiters.registered = 0
            self.changed.append(waiters)
        return 0

    cdef int submit(self, Op op) except -1:
        if self.closed:
            raise RuntimeError("Event loop is closed")
        self.backlog.append(op)
        self.ops.submitted(op)  # only after `append`, which may fail for lack of memory
        return 0

    cdef int cancel(self, Op op) except -1:
        if op.state == OP_IN_KERNEL:
            # Now, not at the end of the turn: the caller may close the descriptor next. If a duplicate of it were open
            # elsewhere, epoll would go on reporting it, and it could not be deregistered.
            self.backlog.append(op)
            self.remove_waiter(op)
        if op.state == OP_IN_KERNEL or op.state == OP_QUEUED:
            self.ops.cancelling(op)
        return 0

    cdef bint has_work(self) noexcept:
        # Readiness doesn't show in memory: ask epoll once in a while, even if callbacks keep the loop busy.
        if self.backlog or self.settled or self.finished:
            return True
        self.blind_turns += 1
        return self.blind_turns >= BLIND_TURNS

    cdef int poll(self) except -1:
        if self.forked:
            self.attach()
        self.flush()
        return self.wait(0)

    cdef int flush_now(self) except -1:
        if not self.forked:
            self.flush()
            self.update_interests()
        return 0

    cdef int sleep(self, int64_t deadline_ns) except -1:
        self.sleeps += 1
        if self.forked:
            self.attach()
            deadline_ns = 0  # a wake before this could not write to the eventfd
        self.flush()
        if self.settled or self.finished or self.ready.count:
            return self.wait(0)
        if self.running and self.wake_op.state == OP_IDLE:
            # The loop is closing, and has cancelled the wake-up operation, so a worker that ends cannot wake the loop.
            wait_for([over for over, _, _ in self.running.values()], return_when=FIRST_COMPLETED)
            deadline_ns = 0
        return self.wait(deadline_ns)

    cdef bint peek(self) noexcept nogil:
        cdef epoll_event event
        cdef timespec now
        now.tv_sec = now.tv_nsec = 0
        if self.coarse:
            return epoll_wait(self.epoll_fd, &event, 1, 0) > 0
        return ur_epoll_pwait2(self.epoll_fd, &event, 1, &now) > 0

    cdef int reap(self) except -1:
        cdef Op op
        while self.finished:
            job = self.finished.popleft()
            op, res = job
            job.clear()
            self.running.pop(op, None)
            self.settle(op, res, 0)
        settled, self.settled = self.settled, []
        for op, res, flags in settled:
            self.completed += 1
            self.ops.completed(op, res, flags, self.ready)
        self.collected_early = False
        return 0

    cdef int flush(self) except -1:
        """Attempt the submitted operations and end the cancelled ones, in order."""
        cdef Op op
        cdef Py_ssize_t done = 0
        backlog, self.backlog = self.backlog, []
        try:
            for op in backlog:
                done += 1
                self.submitted += 1
                if op.state == OP_CANCELLING:
                    self.end(op)
                elif op.state == OP_QUEUED:
                    self.ops.entered(op)
                    if op.need == NEED_THREAD:
                        self.start_blocking(op)
                    elif self.advance(op):
                        self.add_waiter(op)
        finally:
            if done < len(backlog):
                self.backlog = backlog[done:] + self.backlog
        return 0

    cdef int attempt(self, Op op, uint32_t *flags) except? -32000:
        """Attempt the operation. All attempts go through this, so that fake.pyx can interfere."""
        return op.attempt(flags)

    cdef bint advance(self, Op op) except -1:
        """Attempt the operation until it would block (returns True: it waits on) or has ended (False)."""
        cdef uint32_t flags
        cdef int res
        for _ in range(SHOTS_A_TURN):
            flags = 0
            res = self.attempt(op, &flags)
            if res == -EAGAIN and not op.quiet:
                return True
            if res == -EINTR:
                continue
            if flags & IORING_CQE_F_BUFFER:
                self.pool.mark_delivered(flags >> IORING_CQE_BUFFER_SHIFT)
            if op.quiet and res == op.full_result():
                if self.ops.finished_quietly(op, self.ready):
                    Py_DECREF(op)
                return False
            self.settle(op, res, flags)
            if not flags & IORING_CQE_F_MORE:
                return False
        return True

    cdef int settle(self, Op op, int res, uint32_t flags) except -1:
        self.settled.append((op, res, flags))
        return 0

    cdef bint has_last_completion(self, Op op) except -1:
        """Whether its last completion is already in `settled`."""
        for entry in self.settled:
            if entry[0] is op and not entry[2] & IORING_CQE_F_MORE:
                return True
        return False

    cdef int end(self, Op op) except -1:
        """Cancel: an operation that waits for readiness ends now; one that a worker runs, when the worker has done it."""
        if op in self.running:
            if not self.withdraw_job(op):
                return 0
        elif self.has_last_completion(op):
            return 0
        self.settle(op, -ECANCELED, 0)
        return 0

    cdef int add_waiter(self, Op op) except -1:
        cdef FdWaiters waiters = self.waiters_by_fd.get(op.fd)
        if waiters is None:
            waiters = self.waiters_by_fd[op.fd] = FdWaiters(op.fd)
            waiters.suspect = True
        elif not waiters.readers and not waiters.writers:
            waiters.suspect = op is not waiters.last_reader and op is not waiters.last_writer
        elif waiters.writers if op.need == NEED_WRITE else waiters.readers:
            waiters.suspect = True  # the other waiters may wait for a closed file that had this number before
        if waiters.suspect:
            self.serials += 1
            waiters.serial = self.serials
        if op.need == NEED_WRITE:
            waiters.writers.append(op)
            waiters.last_writer = op
        else:
            waiters.readers.append(op)
            waiters.last_reader = op
        self.changed.append(waiters)
        return 0

    cdef int remove_waiter(self, Op op) except -1:
        cdef FdWaiters waiters = self.waiters_by_fd.get(op.fd)
        if waiters is None:
            return 0
        waiting = waiters.writers if op.need == NEED_WRITE else waiters.readers
        if op in waiting:
            waiting.remove(op)
            self.update_interest(waiters)
        return 0

    cdef int update_interests(self) except -1:
        """Update epoll's registrations just before waiting, so that waits that begin and end in one turn cost nothing."""
        changed, self.changed = self.changed, []
        for waiters in changed:
            self.update_interest(waiters)
        return 0

    cdef int update_interest(self, FdWaiters waiters) except -1:
        cdef epoll_event event
        cdef int err
        cdef int action = EPOLL_CTL_MOD if waiters.registered else EPOLL_CTL_ADD
        event.events = (<uint32_t> EPOLLIN if waiters.readers else 0) | (<uint32_t> EPOLLOUT if waiters.writers else 0)
        event.data.u64 = <uint64_t> waiters.serial << 32 | <uint32_t> waiters.fd
        if not event.events and self.waiters_by_fd.get(waiters.fd) is waiters:
            del self.waiters_by_fd[waiters.fd]
        if event.events == waiters.registered and not (waiters.suspect and event.events):
            return 0
        if self.forked:
            return 0  # the epoll belongs to the parent
        if not event.events:
            action = EPOLL_CTL_DEL
        err = 0 if epoll_ctl(self.epoll_fd, action, waiters.fd, &event) == 0 else errno
        # The program may have closed the descriptor meanwhile, and another file may have its number.
        if err == ENOENT and action == EPOLL_CTL_MOD:
            err = 0 if epoll_ctl(self.epoll_fd, EPOLL_CTL_ADD, waiters.fd, &event) == 0 else errno
        elif err == EEXIST:
            err = 0 if epoll_ctl(self.epoll_fd, EPOLL_CTL_MOD, waiters.fd, &event) == 0 else errno
        waiters.registered = event.events
        waiters.suspect = False
        if err and event.events:
            del self.waiters_by_fd[waiters.fd]
            for op in waiters.readers + waiters.writers:
                self.settle(op, -err, 0)
            waiters.readers = []
            waiters.writers = []
        return 0

    cdef int wait(self, int64_t deadline_ns) except -1:
        cdef epoll_event events[EVENTS_A_WAIT]
        cdef int count, i, timeout
        cdef timespec ts
        cdef timespec *limit = NULL
        cdef int64_t left = 0
        self.update_interests()
        self.blind_turns = 0
        if self.settled or self.finished:
            deadline_ns = 0
        if deadline_ns != INT64_MAX:
            left = deadline_ns - ur_now_ns() if deadline_ns > 0 else 0
            left = max(left, 0)
            ts.tv_sec = left // 1000000000
            ts.tv_nsec = left % 1000000000
            limit = &ts
        self.enters += 1
        with nogil:
            count = -1
            if not self.coarse:
                count = ur_epoll_pwait2(self.epoll_fd, events, EVENTS_A_WAIT, limit)
                if count < 0 and (errno == ENOSYS or errno == EPERM):
                    self.coarse = True
            if self.coarse:
                # Round up: a timer may be a millisecond late, but never early.
                left = (left + 999999) // 1000000
                timeout = -1 if limit is NULL else <int> left if left < 1 << 30 else 1 << 30
                count = epoll_wait(self.epoll_fd, events, EVENTS_A_WAIT, timeout)
        if count < 0 and errno != EINTR:
            raise OSError(errno, os.strerror(errno))
        for i in range(count):
            self._ready(<int> (events[i].data.u64 & 0xffffffff), events[i].data.u64 >> 32, events[i].events)
        PyErr_CheckSignals()
        return 0

    cdef int _ready(self, int fd, uint32_t serial, uint32_t events) except -1:
        cdef FdWaiters waiters = self.waiters_by_fd.get(fd)
        if waiters is None or waiters.serial != serial:
            # A file whose descriptor was closed, but which lives on in a duplicate: without its number, epoll can't be
            # told to forget it, and it would end every wait.
            return self._renew()
        if events & (EPOLLIN | EPOLLHUP | EPOLLERR) and waiters.readers:
            waiters.readers = self._advance_all(waiters.readers)
        if events & (EPOLLOUT | EPOLLHUP | EPOLLERR) and waiters.writers:
            waiters.writers = self._advance_all(waiters.writers)
        self.changed.append(waiters)
        return 0

    cdef list _advance_all(self, list waiting):
        cdef Op op
        return [op for op in waiting if op.state != OP_CANCELLING and self.advance(op) or op.state == OP_CANCELLING]

    cdef int start_blocking(self, Op op) except -1:
        if self.workers is None:
            self.workers = Workers("uringloop")
        # A job is [op, result]. This thread takes the operation out of it, because a worker must not drop the last
        # reference to an object that this thread made: a free-threaded Python would not free that until this thread runs
        # Python again, and it may be asleep, waiting for the very memory that the operation holds.
        job = [op, 0]
        claim = [True]  # the thread that pops it, a worker or this one, has the job
        over = Future()
        self.running[op] = (over, job, claim)
        try:
            self.workers.submit(self._block, job, claim, over)
        except BaseException as error:
            # No thread could be started, or Ctrl-C came. The job may be in the workers' queue, and run all the same.
            if self.withdraw_job(op):
                self.settle(op, -EAGAIN, 0)
            if not isinstance(error, RuntimeError):
                raise
        return 0

    cdef bint withdraw_job(self, Op op) except -1:
        """Take a job back. Return False if a worker has begun with it."""
        _, job, claim = self.running[op]
        try:
            claim.pop()
        except IndexError:
            return False
        job.clear()
        del self.running[op]
        return True

    def _block(self, list job, list claim, over):
        """Run a job, in a worker thread."""
        cdef Op op
        cdef int res
        try:
            claim.pop()
        except IndexError:
            return
        op = job[0]
        with nogil:
            res = op.block()
        op = None
        job[1] = res
        self.finished.append(job)
        over.set_result(None)
        self.wake()

    cdef int close(self) except -1:
        if self.closed:
            return 0
        if self.workers is not None:
            self.workers.shutdown(wait=True)
        self._close_epoll()
        return Engine.close(self)

    cdef long system_calls(self) noexcept:
        return self.enters
