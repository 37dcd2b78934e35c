from cpython.object cimport PyObject

from uringloop._core.engine.ready_queue cimport Runnable
from uringloop._core.lifetime.guard cimport ur_guard

# A waiter's life. Every change is made under its line's guard, in waitlist.pyx and, for plain threads, thread_wait.pyx.
#   waiting -> granted    it was chosen: what it waited for is its own from now on, before it even wakes
#   waiting -> cancelled  it left the line
#   waiting -> failed     it will not get what it waited for: it raises `error`
#   granted -> done       it resumed, and has what it waited for
#   granted -> passed     it can not resume (its loop is closed, it was cancelled): the grant goes to another
#   any -> over           whatever awaited it threw into it, or closed it: it is of no use any more
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
    # `next` of Runnable is the one behind: a waiter is in a line or in a ready queue, never in both.
    cdef PyObject *previous           # the line's guard
    cdef WaiterState state            # the line's guard
    cdef Waitlist line                # never changes
    cdef readonly object _loop        # never changes: the loop whose task waits; None: a plain thread does
    cdef bint on_own_loop             # never changes: _loop is a Loop
    cdef object value                 # set before it is in the line, later by who takes it out
    cdef object error                 # the line's guard: the class of what it raises, once it has failed
    # Of the waiting task's own thread:
    cdef public bint _asyncio_future_blocking
    cdef bint delivered               # `run` was called: a callback added now is called at once
    cdef object callback              # the task's wakeup
    cdef object cvars
    cdef object message               # of the cancellation
    cdef object thread_lock           # a plain thread's: the lock it sleeps on, released to wake it

    cdef bint abandon(self) noexcept
    cdef bint is_lost(self) except -1
    cdef int leave(self) except -1
    cdef bint wake_up(self) except -1
    cdef int report(self, object loop) except -1


cdef class Waitlist:
    cdef ur_guard guard
    # Under the guard. Each link owns one reference; invisible to Cython, shown to the collector by waitlist.pyx.
    cdef PyObject *head
    cdef PyObject *tail
    cdef readonly Py_ssize_t waiting
    cdef readonly Py_ssize_t threads  # how many of them are plain threads
    cdef long waits                   # had to wait
    cdef long grants                  # waiters chosen
    cdef long cancels                 # waiters that left
    cdef long passes                  # grants that went on to another, for who had them could not resume
    cdef object refusal               # None, or the class of the exception for who would have to wait
    cdef object __weakref__

    # What a primitive defines: what can be taken, that it can be taken again, and what it is.
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
