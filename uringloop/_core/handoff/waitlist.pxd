from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from uringloop._core.engine.ready_queue cimport Runnable
from uringloop._core.lifetime.guard cimport ur_guard

# The states of a waiter. Every change happens under its line's guard, in waitlist.pyx and, for plain threads, in
# thread_wait.pyx.
#   waiting -> granted    the line chose it: it owns what it waited for from now on, even before it wakes
#   waiting -> cancelled  it left the line
#   waiting -> failed     it will not get what it waited for: it raises `error`
#   granted -> done       it resumed, and returned what it waited for
#   granted -> passed     it cannot resume (its loop is closed, or it was cancelled): the grant goes to another waiter
#   any -> over           the coroutine that awaited it threw into it or closed it: it cannot be used again
cdef enum WaiterState:
    WAITER_NEW
    WAITER_WAITING
    WAITER_GRANTED
    WAITER_CANCELLED
    WAITER_FAILED
    WAITER_PASSED
    WAITER_DONE
    WAITER_OVER


cdef class Waiter(Runnable):
    # `next` of Runnable links to the waiter behind: a waiter is in a line or in a ready queue, never in both.
    cdef PyObject *previous           # under the line's guard
    cdef WaiterState state            # under the line's guard
    cdef Waitlist line                # never changes
    cdef readonly object _loop        # never changes: the loop whose task waits; None: a plain thread waits
    cdef bint on_own_loop             # never changes: _loop is a Loop
    cdef object value                 # set before the waiter is in the line; a Barrier replaces it under the line's guard
    cdef readonly int64_t since_ns    # set before the waiter is in the line; 0: not recorded (wait_times.pyx)
    cdef object error                 # under the line's guard: the class of the exception it raises, once it has failed
    # Only the waiting task's own thread uses:
    cdef public bint _asyncio_future_blocking
    cdef bint delivered               # `run` was called: a callback added now is scheduled at once
    cdef object callback              # the task's wakeup
    cdef object cvars
    cdef object message               # of the cancellation
    cdef object thread_lock           # the lock on which a plain thread sleeps; releasing it wakes the thread

    cdef bint abandon(self) noexcept
    cdef bint is_lost(self) except -1
    cdef int leave(self) except -1
    cdef bint wake_up(self) except -1
    cdef int report(self, object loop) except -1


cdef class Waitlist:
    cdef ur_guard guard
    # Under the guard. Each link owns one reference, of which Cython does not know; waitlist.pyx shows them to the collector.
    cdef PyObject *head
    cdef PyObject *tail
    cdef readonly Py_ssize_t waiting
    cdef readonly Py_ssize_t threads  # how many of them are plain threads
    cdef long waits                   # how many had to wait
    cdef long grants                  # how many waiters were granted what they waited for
    cdef long cancels                 # how many waiters left the line
    cdef long passes                  # how many grants went to another waiter because the first could not resume
    cdef readonly str name            # set by __init__ of the primitive: what reports call it, or None
    cdef object refusal               # None, or the class of the exception that a caller gets instead of waiting
    cdef object __weakref__

    # The methods that a primitive defines (waitlist.pyx describes each):
    cdef bint try_acquire(self) noexcept
    cdef bint put_back(self) noexcept
    cdef object collect(self, object value)
    cdef str wait_name(self)
    cdef bint cancel_instead(self, object message) except -1
    cdef int grantee_lost(self, object value) except -1
    cdef int held_by_a_task(self) except -1

    cdef WaiterState enter(self, Waiter waiter) noexcept
    cdef bint withdraw(self, Waiter waiter) noexcept
    cdef object start(self, object value)
    cdef bint hand_on(self) except -1
    cdef int unlock_and_grant_all(self) except -1
    cdef int unlock_and_fail_all(self, object error) except -1
    cdef int close_line(self, object refusal) except -1
    cdef bint append(self, Waiter waiter) noexcept
    cdef dict counts(self)


cdef Waiter task_waiter(Waitlist line, object value)
cdef Waiter thread_waiter(Waitlist line, object value)
cdef bint take(Waitlist line) noexcept
cdef PyObject *grant_next(Waitlist line, bint *more) noexcept
cdef bint deliver(PyObject *owned) except -1
