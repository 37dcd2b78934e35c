from libc.stdint cimport int64_t

from uringloop._core.engine.ready_queue cimport ReadyQueue, Runnable
from uringloop._core.loop.loop cimport Idler, Loop
from uringloop._core.lifetime.guard cimport ur_guard
from uringloop.scheduler.outcome cimport Outcome


cdef class PendingJob(Runnable):
    # Of whoever holds it: the queue it is in.
    cdef Outcome job
    cdef object coroutine          # until it is a task
    cdef object cvars
    cdef Intake intake             # whose context will start it

    cdef int make_task(self) except -1
    cdef int refuse(self) except -1


cdef class Intake(Idler):
    cdef Loop loop                 # never changes
    cdef readonly object name      # never changes: the context's
    cdef readonly object running   # the context's thread: the jobs whose tasks it runs
    cdef ur_guard guard
    # Under the guard:
    cdef tuple peers               # set once, before the first job, and read by jobs without it; () without stealing
    cdef ReadyQueue waiting        # not started, and any context may
    cdef ReadyQueue pinned         # not started, and this context will
    cdef int scheduled             # it is in the loop's inbox or ready queue, and will run; a hint without the guard
    cdef readonly bint closed      # nothing is taken any more
    cdef object cause              # written before: None, or what jobs that were taken and did not start fail with
    # The context's thread:
    cdef int64_t last_run_ns
    cdef Py_ssize_t last_started
    # Statistics. `unstarted` by any thread, atomic: jobs accepted and not begun; the others by the context's thread.
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
