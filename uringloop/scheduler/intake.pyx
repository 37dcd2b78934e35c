# PendingJob and Intake: carry a job to its context, where it becomes a task. A context has one Intake, which owns its
# jobs that have not started, in two queues: those that an idle context may steal, and those that are pinned. A job
# that has started never moves. The loop gets the intake, not the jobs: a blocked or dead loop holds none of them, and
# any thread can still steal or refuse them.
#
# An intake starts about as many jobs as fit in a millisecond, as measured in its last turn, then lets its loop run. So
# other contexts can still steal from a burst of long jobs, and short jobs don't cost a turn each. It starts all pinned jobs
# at once, because no other context may start them.
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
    """A job on its way to its context, with its coroutine, which has not started."""

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
        """The job will not start: it fails with the exception that closed its context, or is cancelled."""
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
        loop.idler = self  # now, before a thread runs the loop

    def set_peers(self, tuple peers):
        """Set the intakes of all contexts, from which this one steals from now on."""
        ur_guard_lock(&self.guard)
        self.peers = peers  # the old value is (), which is immortal: no object dies under the guard
        ur_guard_unlock(&self.guard)

    def submit(self, Outcome job, coroutine, cvars, bint pinned):
        """Accept a job, from any thread. False: the context accepts no more jobs, and the coroutine is untouched."""
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
        """Count `count` jobs of a batch before they are submitted, so that the policy "least_loaded" sees them."""
        ur_add_long(&self.unstarted, count)

    def submit_batch(self, list batch, bint pinned):
        """submit for many (job, coroutine, cvars), each of them reserved; wakes the loop at most once."""
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
        """Whether the loop is neither asleep nor spinning before it sleeps; another thread may read a slightly old state."""
        return not ur_load_flag(&self.loop.inbox.asleep) and not ur_load_flag(&self.loop.spinner.spinning)

    cdef int schedule(self) except -1:
        # If the loop has closed meanwhile, `close` refuses the jobs that wait.
        self.push_to_loop(self)
        return 0

    cdef bint push_to_loop(self, Runnable node) except -1:
        cdef Loop loop = self.loop
        if runs_here(loop):
            ready_push(loop.ready, node)
            return True
        return loop.inbox.try_push(node)

    cdef int unpark_idle(self, Py_ssize_t count) except -1:
        """More jobs wait than this context has started on: wake up to `count` sleeping contexts, which will steal."""
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
        """Called from any thread. True: the caller must push this to the loop."""
        cdef bint must_schedule
        ur_guard_lock(&self.guard)
        must_schedule = not self.scheduled and not self.closed
        if must_schedule:
            ur_store_flag(&self.scheduled, True)
        ur_guard_unlock(&self.guard)
        return must_schedule

    cdef int run(self, object loop) except -1:
        """Start some jobs; if more wait, here or elsewhere, run again in the next turn."""
        cdef int64_t now = ur_now_ns()
        cdef Py_ssize_t most = self.batch_limit(now), begun = 0, first
        cdef bint again
        ur_guard_lock(&self.guard)
        first = self.pinned.count  # jobs that arrive meanwhile start in a later turn
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
        """Start at most `most` jobs of this queue; returns how many. It takes them out one by one, so that others can steal
        the rest."""
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
        """How many jobs to start: as many as took a millisecond last time, if that was one turn ago."""
        cdef int64_t took = now - self.last_run_ns
        cdef Py_ssize_t most
        if took <= 0 or self.last_started == 0:
            return 4
        most = <Py_ssize_t> (SLICE_NS * self.last_started // took)
        return max(1, min(most, MOST_AT_ONCE, 2 * self.last_started + 2))

    cdef bint schedule_stealing(self) except -1:
        """Called before the loop sleeps: schedule this intake to steal if a busy context has jobs to steal. A submitter that
        finds a context busy wakes a sleeping one, but it may have found this one still awake. A context that is not busy is
        just being woken, and starts its jobs itself."""
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
        """The other context with the most jobs to steal, or None."""
        cdef Intake peer, found = None
        cdef Py_ssize_t count, longest = 0
        for peer in self.peers:
            count = 0 if peer is self else peer.stealable()
            if count > longest:
                found, longest = peer, count
        return found

    cdef Py_ssize_t stealable(self) noexcept:
        """How many of its jobs any context may start; may be called from any thread."""
        cdef Py_ssize_t count
        ur_guard_lock(&self.guard)
        count = self.waiting.count
        ur_guard_unlock(&self.guard)
        return count

    cdef bint steal(self, Py_ssize_t most) except -1:
        """Move half of the victim's waiting jobs, at most `most`, into this intake's own queue. False: there are none."""
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
            self.refuse_all(batch)  # a stop of the scheduler gave this context up meanwhile
        return taken

    cdef void dropped(self) noexcept:
        """The loop closes: `close` refuses the jobs that wait."""

    def close(self, error):
        """Accept no more jobs; those that wait fail with `error`, or are cancelled if that is None. From any thread."""
        cdef ReadyQueue rest = ReadyQueue()
        ur_guard_lock(&self.guard)
        if not self.closed:
            self.cause = error  # the field was None, so no object dies under the guard
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
        """A running job has ended. Called on the context's thread."""
        self.running.discard(job)
        if job.state == OUTCOME_DONE:
            self.done += 1
        elif job.state == OUTCOME_FAILED:
            self.failed += 1
        else:
            self.cancelled += 1

    @property
    def load(self):
        """How many jobs wait or run; read without a lock, so it may be slightly old."""
        return ur_load_long(&self.unstarted) + len(self.running)

    @property
    def pending(self):
        """How many jobs have not started."""
        return ur_load_long(&self.unstarted)

    @property
    def accepted(self):
        return ur_load_long(&self.submitted)


ur_only_core_makes(PendingJob)
