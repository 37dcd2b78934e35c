# PendingJob and Intake: how a job gets to its context and becomes a task there. A context has one Intake, which owns
# the jobs that were handed to it and have not started: two lines, of those that an idle context may take over and of
# those that are pinned. What has started never moves. The loop is handed the intake, not the jobs: so a loop that is
# blocked, or dead, has none of them, and they can still be taken over or refused by any thread.
#
# An intake starts what a millisecond holds, by the measure of its last turn, then lets its loop run: a burst of long
# jobs stays in reach of the others, a burst of short ones costs no turn each. Pinned ones wait for nobody, and all start.
from asyncio import tasks
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t

from uringloop._core.engine.ready_queue cimport ReadyQueue, Runnable, ready_pop, ready_push, ready_push_owned
from uringloop._core.kernel.abi cimport ur_now_ns
from uringloop._core.loop.loop cimport Idler, Loop, runs_here
from uringloop._core.lifetime.guard cimport (
    ur_add_long, ur_guard_init, ur_guard_lock, ur_guard_unlock, ur_load_flag, ur_load_long, ur_only_core_makes,
    ur_store_flag,
)
from uringloop.scheduler.outcome cimport (
    OUTCOME_CANCELLED, OUTCOME_DONE, OUTCOME_FAILED, OUTCOME_RUNNING, Outcome,
)

cdef enum:
    MOST_AT_ONCE = 64
    SLICE_NS = 1_000_000

cdef object _Task = tasks.Task


cdef class PendingJob(Runnable):
    """A job on its way to its context, and the coroutine that was not started."""

    cdef int make_task(self) except -1:
        """On the context's thread: make the task, unless the job was cancelled."""
        cdef Outcome job = self.job
        cdef Intake intake = self.intake
        coroutine, self.coroutine = self.coroutine, None
        if not job.set_running(intake.loop):
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


cdef class Intake(Idler):
    def __cinit__(self, Loop loop, name):
        ur_guard_init(&self.guard)
        self.waiting, self.pinned = ReadyQueue(), ReadyQueue()
        self.running = set()
        self.peers = ()
        self.last_started = 4
        self.loop, self.name = loop, name
        loop.idler = self  # now, before there is a thread that runs it

    def set_peers(self, tuple peers):
        """The intakes of all contexts: from now on each takes over from the others."""
        ur_guard_lock(&self.guard)
        self.peers = peers  # it was (), which stays: nothing dies under the guard
        ur_guard_unlock(&self.guard)

    def submit(self, Outcome job, coroutine, cvars, bint pinned):
        """From any thread. False: the context takes no jobs any more, and the coroutine is untouched."""
        cdef bint must_schedule = False, busy = self.is_busy()
        cdef PendingJob start = PendingJob.__new__(PendingJob)
        start.job, start.coroutine, start.cvars = job, coroutine, cvars
        start.intake = self
        pinned = pinned or not self.peers
        ur_add_long(&self.unstarted, 1)
        ur_guard_lock(&self.guard)
        if self.closed:
            ur_guard_unlock(&self.guard)
            ur_add_long(&self.unstarted, -1)
            return False
        ready_push(self.pinned if pinned else self.waiting, start)
        must_schedule = not self.scheduled
        ur_store_flag(&self.scheduled, True)
        ur_guard_unlock(&self.guard)
        ur_add_long(&self.submitted, 1)
        if must_schedule:
            self.schedule()
        if not pinned and (busy or not must_schedule):
            self.unpark_idle(1)
        return True

    def reserve(self, Py_ssize_t count):
        """So many of a batch are going to be handed in: they count at once, for who looks where the load is least."""
        ur_add_long(&self.unstarted, count)

    def submit_batch(self, list batch, bint pinned):
        """The same for many (job, coroutine, cvars), each of them reserved, with one wake at most."""
        cdef bint must_schedule = False, busy = self.is_busy()
        cdef Py_ssize_t count = len(batch)
        cdef ReadyQueue starts = ReadyQueue()
        cdef PendingJob start
        for job, coroutine, cvars in batch:
            start = PendingJob.__new__(PendingJob)
            start.job, start.coroutine, start.cvars = <Outcome?> job, coroutine, cvars
            start.intake = self
            ready_push(starts, start)
        pinned = pinned or not self.peers
        ur_guard_lock(&self.guard)
        if self.closed:
            ur_guard_unlock(&self.guard)
            ur_add_long(&self.unstarted, -count)
            return False
        (self.pinned if pinned else self.waiting).append(starts)
        must_schedule = not self.scheduled
        ur_store_flag(&self.scheduled, True)
        ur_guard_unlock(&self.guard)
        ur_add_long(&self.submitted, count)
        if must_schedule:
            self.schedule()
        if not pinned:
            self.unpark_idle(count if busy else count - must_schedule)
        return True

    cdef bint is_busy(self) noexcept:
        """As far as one can tell from another thread: it neither sleeps nor looks whether it should."""
        return not ur_load_flag(&self.loop.inbox.asleep) and not ur_load_flag(&self.loop.spinner.spinning)

    cdef int schedule(self) except -1:
        # Closed in between: closing sees to what waits.
        self.push_to_loop(self)
        return 0

    cdef bint push_to_loop(self, Runnable node) except -1:
        cdef Loop loop = self.loop
        if runs_here(loop):
            ready_push(loop.ready, node)
            return True
        return loop.inbox.try_push(node)

    cdef int unpark_idle(self, Py_ssize_t count) except -1:
        """More waits than this context has begun on: wake so many that sleep, which will look for work."""
        cdef Intake peer
        for peer in self.peers:
            if count <= 0:
                break
            if peer is self or not ur_load_flag(&peer.loop.inbox.asleep) or ur_load_flag(&peer.scheduled):
                continue
            if peer.claim_schedule():
                peer.schedule()
                count -= 1
        return 0

    cdef bint claim_schedule(self) noexcept:
        """From any thread. True: it is the caller's to hand this to the loop."""
        cdef bint must_schedule
        ur_guard_lock(&self.guard)
        must_schedule = not self.scheduled and not self.closed
        if must_schedule:
            ur_store_flag(&self.scheduled, True)
        ur_guard_unlock(&self.guard)
        return must_schedule

    cdef int run(self, object loop) except -1:
        """Start some; if more wait, here or elsewhere, again in the next turn."""
        cdef int64_t now = ur_now_ns()
        cdef Py_ssize_t most = self.batch_limit(now), begun = 0, first
        cdef bint again
        ur_guard_lock(&self.guard)
        first = self.pinned.count  # those that come meanwhile have their turn later
        ur_guard_unlock(&self.guard)
        try:
            self.begin_jobs(self.pinned, first)
            if self.peers:
                begun = self.begin_jobs(self.waiting, most)
                if begun == 0 and self.steal(most):
                    begun = self.begin_jobs(self.waiting, most)
            self.last_run_ns = now
            self.last_started = begun
        finally:
            ur_guard_lock(&self.guard)
            again = begun != 0 or self.waiting.head is not NULL or self.pinned.head is not NULL
            if not again:
                ur_store_flag(&self.scheduled, False)
            ur_guard_unlock(&self.guard)
            if again:
                ready_push(self.loop.ready, self)
        return 0

    cdef Py_ssize_t begin_jobs(self, ReadyQueue line, Py_ssize_t most) except -1:
        """Begin so many of a line at most; how many. One by one: what this loop has not begun stays in reach of others."""
        cdef Py_ssize_t begun = 0
        cdef PyObject *node
        while begun < most:
            node = NULL
            ur_guard_lock(&self.guard)
            if line.head is not NULL:
                node = ready_pop(line)
            ur_guard_unlock(&self.guard)
            if node is NULL:
                break
            ur_add_long(&self.unstarted, -1)
            try:
                (<PendingJob> node).intake = self
                (<PendingJob> node).make_task()
            finally:
                Py_DECREF(<object> node)
            begun += 1
        return begun

    cdef Py_ssize_t batch_limit(self, int64_t now):
        """How many to start: what took a millisecond last time, if that was one turn ago."""
        cdef int64_t took = now - self.last_run_ns
        cdef Py_ssize_t most
        if took <= 0 or self.last_started == 0:
            return 4
        most = <Py_ssize_t> (SLICE_NS * self.last_started // took)
        return max(1, min(most, MOST_AT_ONCE, 2 * self.last_started + 2))

    cdef bint schedule_stealing(self) except -1:
        """Who hands a job to a busy context looks for one that sleeps; one that did not yet must look itself. What waits
        for a context that is just being woken is left to it."""
        cdef bint found = False
        cdef Intake peer
        cdef tuple peers
        ur_guard_lock(&self.guard)
        peers = self.peers
        ur_guard_unlock(&self.guard)
        for peer in peers:
            found = found or peer is not self and peer.is_busy() and peer.stealable()
        if not found or not self.claim_schedule():
            return False
        ready_push(self.loop.ready, self)
        return True

    cdef Intake choose_victim(self):
        """The other context at which most jobs wait; None: none do."""
        cdef Intake peer, found = None
        cdef Py_ssize_t count, longest = 0
        for peer in self.peers:
            count = 0 if peer is self else peer.stealable()
            if count > longest:
                found, longest = peer, count
        return found

    cdef Py_ssize_t stealable(self) noexcept:
        """How many wait that any context may start; from any thread."""
        cdef Py_ssize_t count
        ur_guard_lock(&self.guard)
        count = self.waiting.count
        ur_guard_unlock(&self.guard)
        return count

    cdef bint steal(self, Py_ssize_t most) except -1:
        """Half of what waits where most waits, into our own line. False: there is none."""
        cdef ReadyQueue batch = ReadyQueue()
        cdef Intake victim = self.choose_victim()
        cdef Py_ssize_t count
        cdef bint taken
        if victim is None:
            return False
        ur_guard_lock(&victim.guard)
        most = min(most, (victim.waiting.count + 1) // 2)
        while batch.count < most and victim.waiting.head is not NULL:
            ready_push_owned(batch, ready_pop(victim.waiting))
        ur_guard_unlock(&victim.guard)
        count = batch.count
        if count == 0:
            return False
        ur_add_long(&victim.unstarted, -count)
        ur_add_long(&self.unstarted, count)
        self.stolen += count
        ur_guard_lock(&self.guard)
        taken = not self.closed
        if taken:
            self.waiting.append(batch)
        ur_guard_unlock(&self.guard)
        if not taken:
            self.refuse_all(batch)  # it was given up by who stops the scheduler
        return taken

    cdef void dropped(self) noexcept:
        """The loop closes: what waits is seen to by `close`."""

    def close(self, error):
        """From any thread: take no more jobs; what waits fails with `error`, or is cancelled if that is None."""
        cdef ReadyQueue rest = ReadyQueue()
        ur_guard_lock(&self.guard)
        if not self.closed:
            self.cause = error  # it was None: nothing dies under the guard
            self.closed = True
        rest.append(self.waiting)
        rest.append(self.pinned)
        ur_guard_unlock(&self.guard)
        self.refuse_all(rest)

    cdef int refuse_all(self, ReadyQueue rest) except -1:
        cdef PyObject *node
        ur_add_long(&self.unstarted, -rest.count)
        while rest.head is not NULL:
            node = ready_pop(rest)
            try:
                (<PendingJob> node).intake = self
                (<PendingJob> node).refuse()
            finally:
                Py_DECREF(<object> node)
        return 0

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
        return ur_load_long(&self.unstarted) + len(self.running)

    @property
    def pending(self):
        """Jobs that have not started."""
        return ur_load_long(&self.unstarted)

    @property
    def accepted(self):
        return ur_load_long(&self.submitted)


ur_only_core_makes(PendingJob)
