from cpython.object cimport PyObject

from uringloop._core.lifetime.guard cimport ur_guard
from uringloop._core.handoff.waitlist cimport Waitlist


cdef class Claim:
    cdef object frame            # never changes: the frame of the coroutine that held the lock; None: not known
    cdef Waitlist line           # never changes: the condition's; None: its task held the lock when its loop was closed
    cdef object loop             # never changes: a weak reference to the waiting task's loop
    cdef LockClaims claims       # never changes
    cdef bint notified           # under the claims' guard: this task has a notification, to use or to pass on
    cdef readonly bint given_up  # its task will not acquire the lock again

    cdef object key(self)
    cdef bint end(self) except -1
    cdef bint dead(self) except -1


cdef class LockClaims:
    cdef ur_guard guard
    cdef object holder           # under the guard: the frame that holds the lock, a weak reference to the loop whose task
                                 # holds it, or None: not known
    cdef dict waiting            # the claims by key: each task will release the lock once more. Any thread uses the dict, by
                                 # its atomic operations
    cdef Py_ssize_t sweep_at     # with this many claims, drop those whose coroutines have ended
    cdef dict noted              # under the guard: `held_locks` of the loop whose task acquired the lock; None: no Loop's task

    cdef object read_hold(self, PyObject **noted)
    cdef object set_holder(self, object holder)
    cdef bint swap_notified(self, Claim claim, bint notified) noexcept
    cdef object release_hold(self)
    cdef bint release_hold_of(self, object holder, dict noted) except -1
    cdef int note_loop(self, Waitlist lock) except -1
    cdef int add(self, Claim claim, object frame, Py_ssize_t references) except -1
    cdef int sweep(self) except -1
    cdef int hold(self) except -1
    cdef int hold_unseen(self) except -1
    cdef bint let_go(self) except -1
    cdef bint is_released_by_holder(self, object holder) except -1
    cdef bint caller_has_died(self) except -1
    cdef Claim claim_of(self, object frame)
