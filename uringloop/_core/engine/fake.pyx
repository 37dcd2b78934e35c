# FakeEngine: a simulated kernel for tests, which does everything that a real kernel may do but seldom does. It completes
# operations out of order, late, in parts, or although they were cancelled; it ends multishot operations early, runs out of
# buffers, and wakes the loop for nothing. It keeps the order of one operation's completions. All decisions come from one
# seed, which its repr shows. Only in debug builds. It never invents or loses data: it refuses calls without making them.
# Only a test that asks for it (`exaggerates`) gets wrong results.
import os
import random

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint32_t

from uringloop._core.engine.epoll cimport EpollEngine
from uringloop._core.engine.op cimport NEED_READ, NEED_THREAD, NEED_WRITE, OP_IN_KERNEL, Op
from uringloop._core.kernel.abi cimport IORING_CQE_BUFFER_SHIFT, IORING_CQE_F_BUFFER, IORING_CQE_F_MORE
from uringloop._core.kernel.libc cimport EAGAIN, EINTR, ENOBUFS


cdef class FakeEngine(EpollEngine):
    def __init__(self, ready, unsigned entries=0):
        EpollEngine.__init__(self, ready, entries)
        self.seed = os.environ.get("URINGLOOP_SEED") or str(random.randrange(10**9))
        self.random = random.Random(self.seed)
        self.delayed = []
        self.receivers = set()
        self.interfered = {}
        self.exaggerates = {}

    def __repr__(self):
        return f"<FakeEngine seed={self.seed!r} {self.ops.count} waiting, {len(self.delayed)} held, {self.enters} waits>"

    cdef bint chance(self, str kind, int one_in) except -1:
        """Return True, and count it, once in `one_in` times on average."""
        if self.random.randrange(one_in):
            return False
        self.interfered[kind] = self.interfered.get(kind, 0) + 1
        return True

    cdef bint has_work(self) noexcept:
        return len(self.delayed) > 0 or EpollEngine.has_work(self)

    cdef int attempt(self, Op op, uint32_t *flags) except? -32000:
        cdef int res
        if op.quiet:
            if self.chance("quiet refused", 4):
                return -EAGAIN
        elif op in self.receivers and self.chance("no buffers", 8):
            return -ENOBUFS
        elif (op.need == NEED_READ or op.need == NEED_WRITE) and self.chance("would block", 8):
            return -EAGAIN  # readiness is still there at the next wait
        if self.chance("short", 3):
            op.attempt_limit = self.random.choice((1, 2, 3, 10, 100, 1000, 10000))
        res = op.attempt(flags)
        op.attempt_limit = 0
        if flags[0] & IORING_CQE_F_BUFFER and flags[0] & IORING_CQE_F_MORE:
            self.receivers.add(op)
        if flags[0] & IORING_CQE_F_MORE and self.chance("ended early", 4):
            flags[0] &= ~<uint32_t> IORING_CQE_F_MORE
        return res

    cdef int settle(self, Op op, int res, uint32_t flags) except -1:
        if res > 0 and self.exaggerates:
            res += self.exaggerates.get(type(op).__name__, 0)
        return EpollEngine.settle(self, op, res, flags)

    cdef bint has_last_completion(self, Op op) except -1:
        for entry in self.delayed:
            if entry[0] is op and not entry[2] & IORING_CQE_F_MORE:
                return True
        return EpollEngine.has_last_completion(self, op)

    cdef int cancel(self, Op op) except -1:
        """As in a kernel, the operation may succeed in spite of the cancel. It is attempted here, because here its descriptor
        is certainly still open."""
        cdef uint32_t flags = 0
        cdef int res
        if op.state != OP_IN_KERNEL or op.need == NEED_THREAD or self.has_last_completion(op) or not self.chance("too late to cancel", 2):
            return EpollEngine.cancel(self, op)
        res = op.attempt(&flags)
        if res == -EAGAIN or res == -EINTR:
            return EpollEngine.cancel(self, op)
        if flags & IORING_CQE_F_BUFFER:
            self.pool.mark_delivered(flags >> IORING_CQE_BUFFER_SHIFT)
        self.remove_waiter(op)
        self.ops.cancelling(op)
        return self.settle(op, res, flags & ~<uint32_t> IORING_CQE_F_MORE)

    cdef int wait(self, int64_t deadline_ns) except -1:
        if self.delayed:
            deadline_ns = 0  # there may be no other event to end the wait
        elif deadline_ns and self.chance("woken for nothing", 4):
            PyErr_CheckSignals()  # as when a signal ends the wait
            return 0
        return EpollEngine.wait(self, deadline_ns)

    cdef int reap(self) except -1:
        """Shuffle the completions, operation by operation, and hold some back for a later walk."""
        by_op = {}
        for entry in self.delayed + self.settled:
            by_op.setdefault(entry[0], []).append(entry)
        groups = list(by_op.values())
        if len(groups) > 1 and self.chance("shuffled", 2):
            self.random.shuffle(groups)
        self.delayed = []
        self.settled = []
        for group in groups:
            kept = len(group)
            if self.chance("late", 3):
                kept = self.random.randrange(len(group))
            self.settled += group[:kept]
            self.delayed += group[kept:]
        for op, _, flags in self.settled:
            if not flags & IORING_CQE_F_MORE:
                self.receivers.discard(op)
        return EpollEngine.reap(self)

    cdef int close(self) except -1:
        self.delayed = []
        return EpollEngine.close(self)
