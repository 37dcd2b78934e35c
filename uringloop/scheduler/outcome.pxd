from uringloop._core.handoff.waitlist cimport Waitlist


cdef enum OutcomeState:
    OUTCOME_PENDING        # not started: cancelling it is all there is to do
    OUTCOME_RUNNING        # its task runs: cancelling it is a request
    OUTCOME_DONE
    OUTCOME_FAILED
    OUTCOME_CANCELLED


cdef class Outcome(Waitlist):
    # Under the guard:
    cdef int state                 # an OutcomeState; read without it too, and then what it says is there, is
    cdef object value              # written once, before the state says that it is there
    cdef object error              # the same
    cdef object traceback
    cdef object task               # while it runs
    cdef object loop               # the same: the task's
    cdef list callbacks            # None: no more are to come
    cdef object condition          # of concurrent.futures, made when it first looks
    cdef readonly list _waiters    # the same
    cdef int announced             # and they know; read by any thread
    cdef int looked                # somebody saw the error: set once, by any thread
    cdef readonly object _name     # never changes: of its task; None: asyncio names it
    cdef readonly object _owner    # never changes: whom `_settled` tells
    cdef public object _intake     # where it was started, if it was

    cdef bint set_running(self, object loop) except -1
    cdef bint settle(self, OutcomeState state, object value, object error, OutcomeState highest_state) except -1
    cdef int announce(self) except -1
    cdef object get(self, object cancelled)
