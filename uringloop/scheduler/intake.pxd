from libc.stdint cimport int64_t

from uringloop._core.engine.ready_queue cimport ReadyQueue, Runnable
from uringloop._core.loop.loop cimport Idler, Loop
from uringloop._core.lifetime.guard cimport ur_guard
from uringloop.scheduler.outcome cimport Outcome


cdef class PendingJob(Runnable):
    # Only the thread that holds it uses these: it is in one queue, or was taken out of one.
    cdef Outcome job
    cdef object coroutine          # until the task is made
    cdef object cvars
    cdef Intake intake             # of the context that will start it

    cdef int make_task(self) except -1
    cdef int refuse(self) except -1


cdef class Intake(Idler):
    cdef Loop loop                 # never changes
    cdef readonly object name      # never changes: the context's
    cdef readonly object running   # the context's thread: the jobs whose tasks it runs
    cdef ur_guard guard
    # Under the guard:
    cdef tuple peers               # set once, before the first job, and read by jobs without it; () without stealing
    cdef ReadyQueue waiting        # jobs that have not started, and any context may start
    cdef ReadyQueue pinned         # jobs that have not started, and only this context may start
    cdef int scheduled             # it is in the loop's inbox or ready queue, and will run; a hint without the guard
    cdef readonly bint closed      # it accepts no more jobs
    cdef object cause              # set before `closed`: None, or the exception that accepted, unstarted jobs fail with
    # Only the context's thread uses these two:
    cdef int64_t last_run_ns
    cdef Py_ssize_t last_started
    # Statistics. Any thread changes `unstarted` (jobs accepted and not started) and `submitted` atomically; only the
    # context's thread changes the others.
    cdef long unstarted
    cdef long submitted
    cdef readonly long started
    cdef readonly long stolen
    cdef readonly long done
    cdef readonly long failed
    cdef readonly long cancelled

    cdef int schedule(self) except -1
    cdef bint push_to_loop(self, Runnable node) except -1
    cdef bint is_busy(self) noexcept
    cdef int unpark_idle(self, Py_ssize_t count) except -1
    cdef bint claim_schedule(self) noexcept
    cdef Py_ssize_t batch_limit(self, int64_t now)
    cdef Py_ssize_t begin_jobs(self, ReadyQueue line, Py_ssize_t most) except -1
    cdef Intake choose_victim(self)
    cdef Py_ssize_t stealable(self) noexcept
    cdef bint steal(self, Py_ssize_t most) except -1
    cdef int refuse_all(self, ReadyQueue rest) except -1
