# Start and Intake: how a job gets to its context and becomes a task there. A context has one Intake, which owns
# the jobs that were handed to it and have not started. Those may be taken over by a context that has none
# of its own; what has started never moves. Pinned jobs go through the loop's inbox, where nobody looks.
#
# An intake starts what a millisecond holds, by the measure of its last turn, then lets its loop run: a burst of long
# jobs stays in reach of the others, a burst of short ones costs no turn each.
from asyncio import tasks
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from uringloop._core.kernel cimport (
    int64_t, ur_add_long, ur_guard_init, ur_guard_lock, ur_guard_unlock, ur_load_flag, ur_load_long, ur_now_ns,
    ur_store_flag,
)
from uringloop._core.loop cimport Loop, runs_here
from uringloop._core.ready cimport ReadyQueue, Runnable, ready_pop, ready_push, ready_push_owned
from uringloop.scheduler.outcome cimport (
    OUTCOME_CANCELLED, OUTCOME_DONE, OUTCOME_FAILED, OUTCOME_RUNNING, Outcome,
)

cdef enum:
    MOST_AT_ONCE = 64
    SLICE_NS = 1_000_000

cdef object _Task = tasks.Task


cdef class Start(Runnable):
    """A job on its way to its context, and the coroutine that was not started."""

    cdef int run(self, object loop) except -1:
        ur_add_long(&self.intake.handed, -1)
        if self.intake.closed:
            self.refuse()
        else:
            self.begin()
        return 0

    cdef int begin(self) except -1:
        """On the context's thread: make the task, unless the job was cancelled."""
        cdef Outcome job = self.job
        cdef Intake intake = self.intake
        coroutine, self.coroutine = self.coroutine, None
        if not job.begin(intake.loop):
            coroutine.close()
            return 0
        intake.started += 1
        job._intake = intake
        try:
            loop = intake.loop
            if loop._task_factory is None:
                task = _Task(coroutine, loop=loop, context=self.cvars, name=job._name)
            else:
                task = loop.create_task(coroutine, context=self.cvars, name=job._name)
            job.task = task
            intake.running.add(job)
            task.add_done_callback(job._settle_by, context=self.cvars)
        except BaseException as error:
            coroutine.close()
            job.settle(OUTCOME_FAILED, None, error, OUTCOME_RUNNING)
        return 0

    cdef int refuse(self) except -1:
        """It will not start: the job fails with what closed its context, or is cancelled."""
        cdef object error = self.intake.cause
        coroutine, self.coroutine = self.coroutine, None
        if coroutine is not None:
            coroutine.close()
        self.job.settle(OUTCOME_CANCELLED if error is None else OUTCOME_FAILED, None, error, OUTCOME_RUNNING)
        return 0

    cdef void dropped(self) noexcept:
        ur_add_long(&self.intake.handed, -1)
        self.refuse()


cdef class Intake(Runnable):
    def __cinit__(self):
        ur_guard_init(&self.guard)
        self.waiting = ReadyQueue()
        self.running = set()
        self.peers = ()
        self.last_started = 4

    def __init__(self, Loop loop, name):
        self.loop, self.name = loop, name

    def set_peers(self, tuple peers):
        """The intakes of all contexts: from now on each takes over from the others."""
        self.peers = peers

    def submit(self, Outcome job, coroutine, cvars, bint pinned):
        """From any thread. False: the context takes no jobs any more, and the coroutine is untouched."""
        cdef Start start = Start.__new__(Start)
        start.job, start.coroutine, start.cvars = job, coroutine, cvars
        start.intake = self
        return self.push(start, pinned)

    cdef bint push(self, Start start, bint pinned) except -1:
        cdef bint taken, call = False
        cdef Loop loop = self.loop
        pinned = pinned or not self.peers
        ur_add_long(&self.handed, 1)
        ur_guard_lock(&self.guard)
        taken = not self.closed
        if taken and not pinned:
            ready_push(self.waiting, start)
            call = not self.called
            ur_store_flag(&self.called, True)
        ur_guard_unlock(&self.guard)
        if taken and pinned:
            taken = self.hand(start)
        if not taken:
            ur_add_long(&self.handed, -1)
            return False
        ur_add_long(&self.submitted, 1)
        if call:
            self.call()
        elif not pinned and self.peers:
            self.nudge_idle()
        return True

    cdef int call(self) except -1:
        # Closed in between: closing sees to what waits.
        self.hand(self)
        return 0

    cdef bint hand(self, Runnable node) except -1:
        cdef Loop loop = self.loop
        if runs_here(loop):
            ready_push(loop.ready, node)
            return True
        return loop.inbox.offer(node)

    cdef int nudge_idle(self) except -1:
        """More waits than this context has begun on: wake one that sleeps, which will look for work."""
        cdef Intake peer
        cdef bint call
        for peer in self.peers:
            if peer is self or not ur_load_flag(&peer.loop.inbox.asleep) or ur_load_flag(&peer.called):
                continue
            ur_guard_lock(&peer.guard)
            call = not peer.called and not peer.closed
            if call:
                ur_store_flag(&peer.called, True)
            ur_guard_unlock(&peer.guard)
            if call:
                peer.call()
                return 0
        return 0

    cdef int run(self, object loop) except -1:
        """Start some; if more wait, here or elsewhere, again in the next turn."""
        cdef int64_t now = ur_now_ns()
        cdef Py_ssize_t most = self.share(now)
        cdef ReadyQueue batch = self.some(most)
        cdef PyObject *node
        if batch.head is NULL and self.peers:
            batch = self.steal(most)
        self.last_run_ns = now
        self.last_started = batch.count
        while batch.head is not NULL:
            node = ready_pop(batch)
            try:
                (<Start> node).intake = self
                (<Start> node).begin()
            finally:
                Py_DECREF(<object> node)
        return 0

    cdef Py_ssize_t share(self, int64_t now):
        """How many to start: what took a millisecond last time, if that was one turn ago."""
        cdef int64_t took = now - self.last_run_ns
        cdef Py_ssize_t most
        if took <= 0 or self.last_started == 0:
            return 4
        most = <Py_ssize_t> (SLICE_NS * self.last_started // took)
        return max(1, min(most, MOST_AT_ONCE, 2 * self.last_started + 2))

    cdef ReadyQueue some(self, Py_ssize_t most):
        """Of its own that wait. It runs again in the next turn if there are, or may be, more."""
        cdef ReadyQueue batch = ReadyQueue()
        cdef bint again
        ur_guard_lock(&self.guard)
        while batch.count < most and self.waiting.head is not NULL:
            ready_push_owned(batch, ready_pop(self.waiting))
        again = batch.count != 0
        if not again:
            ur_store_flag(&self.called, False)
        ur_guard_unlock(&self.guard)
        if batch.count:
            ur_add_long(&self.handed, -batch.count)
        if again:
            ready_push(self.loop.ready, self)
        return batch

    cdef ReadyQueue steal(self, Py_ssize_t most):
        """Half of what waits where most waits."""
        cdef ReadyQueue batch = ReadyQueue()
        cdef Intake peer, victim = None
        cdef Py_ssize_t count, longest = 0
        cdef bint call
        for peer in self.peers:
            if peer is self:
                continue
            ur_guard_lock(&peer.guard)
            count = peer.waiting.count
            ur_guard_unlock(&peer.guard)
            if count > longest:
                victim, longest = peer, count
        if victim is None:
            return batch
        ur_guard_lock(&victim.guard)
        most = min(most, (victim.waiting.count + 1) // 2)
        while batch.count < most and victim.waiting.head is not NULL:
            ready_push_owned(batch, ready_pop(victim.waiting))
        ur_guard_unlock(&victim.guard)
        if batch.count == 0:
            return batch
        ur_add_long(&victim.handed, -batch.count)
        self.stolen += batch.count
        ur_guard_lock(&self.guard)
        call = not self.called
        ur_store_flag(&self.called, True)
        ur_guard_unlock(&self.guard)
        if call:
            ready_push(self.loop.ready, self)  # for more of it
        return batch

    cdef void dropped(self) noexcept:
        """The loop closes: what waits is seen to by `close`."""

    def close(self, error):
        """Take no more jobs; what waits fails with `error`, or is cancelled if that is None."""
        cdef ReadyQueue rest = ReadyQueue()
        cdef PyObject *node
        self.cause = error
        ur_guard_lock(&self.guard)
        self.closed = True
        rest.append(self.waiting)
        ur_guard_unlock(&self.guard)
        ur_add_long(&self.handed, -rest.count)
        while rest.head is not NULL:
            node = ready_pop(rest)
            try:
                (<Start> node).refuse()
            finally:
                Py_DECREF(<object> node)

    def settled(self, Outcome job):
        """On the context's thread: one that was running has ended."""
        self.running.discard(job)
        if job.state == OUTCOME_DONE:
            self.done += 1
        elif job.state == OUTCOME_FAILED:
            self.failed += 1
        else:
            self.cancelled += 1

    @property
    def load(self):
        """Jobs that wait or run; without a lock, and so of a moment ago."""
        return ur_load_long(&self.handed) + len(self.running)

    @property
    def pending(self):
        """Jobs that have not started."""
        return ur_load_long(&self.handed)

    @property
    def accepted(self):
        return ur_load_long(&self.submitted)
