from cpython.object cimport PyObject

from uringloop._core.kernel cimport ur_guard
from uringloop._core.ready cimport Runnable

# A waiter's life. Every change but the last is made under its line's guard, in waitlist.pyx alone.
#   waiting -> granted    the owner chose it: what it waited for is its own from now on, before it wakes
#   waiting -> cancelled  it left the line
#   waiting -> failed     it will not get what it waited for: it raises `error`
#   granted -> done       it resumed, and has what it waited for
#   granted -> passed     it can not resume (its loop is closed, or it was cancelled): another one was chosen
cdef enum WaiterState:
    WAITER_NEW
    WAITER_WAITING
    WAITER_GRANTED
    WAITER_CANCELLED
    WAITER_FAILED
    WAITER_PASSED
    WAITER_DONE


cdef class Waiter(Runnable):
    # `next` of Runnable is the one behind: a waiter is in a line, or in a ready queue, never in both.
    cdef PyObject *ahead              # the line's guard
    cdef WaiterState state            # the line's guard
    cdef Waitlist line                # never changes
    cdef readonly object _loop        # never changes: the loop whose task waits; None for a plain thread
    cdef bint ours                    # never changes: _loop is a Loop
    cdef object value                 # of who waits until it is in the line, then of who grants
    cdef object error                 # set under the line's guard by who lets it fail
    # Of the waiting task's own thread:
    cdef public bint _asyncio_future_blocking
    cdef bint delivered               # `run` was called: a callback added now is called at once
    cdef object callback              # the task's wakeup
    cdef object cvars
    cdef object message               # of the cancellation
    cdef object asleep                # a plain thread's: a lock it sleeps on, released to wake it

    cdef bint abandon(self) noexcept
    cdef int wake_up(self) except -1
    cdef object outcome(self)


cdef class Waitlist:
    cdef ur_guard guard
    # Under the guard. Each link owns one reference; invisible to Cython, shown to the collector by waitlist.pyx.
    cdef PyObject *head
    cdef PyObject *tail
    cdef Py_ssize_t waiting
    cdef long waits                   # had to wait
    cdef long grants                  # waiters woken with what they waited for
    cdef long cancels                 # waiters that left
    cdef long passes                  # grants taken back from one who can not use them
    cdef Ready entry                  # what `async with` awaits: one for all, it has no state
    cdef object __weakref__

    # For the primitive to define:
    cdef bint take(self) noexcept
    cdef void give_back(self) noexcept
    cdef object collect(self, object value)

    cdef object start(self, object value)
    cdef object block(self, object value, object timeout)
    cdef PyObject *pop(self) noexcept
    cdef PyObject *pop_all(self) noexcept
    cdef dict counts(self)


cdef class Ready:
    # Nothing changes but `iterator` and `used`, which belong to the task that awaits.
    cdef Waitlist line
    cdef object value


cdef class Wait(Ready):
    cdef object iterator


cdef class Finished:
    cdef readonly object value


cdef Finished FINISHED                 # awaiting it gives None, at once
cdef bint deliver(PyObject *owned) except -1
cdef int deliver_all(PyObject *chain) except -1
cdef int not_in_a_loop(str what, str instead) except -1
