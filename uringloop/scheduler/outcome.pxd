from uringloop._core.handoff.waitlist cimport Waitlist


cdef enum OutcomeState:
    OUTCOME_PENDING        # not started: a cancel settles the job
    OUTCOME_RUNNING        # its task runs: a cancel is a request to the task
    OUTCOME_DONE
    OUTCOME_FAILED
    OUTCOME_CANCELLED


cdef class DoneCallback:
    # These never change.
    cdef object callback
    cdef object loop               # the loop on which it is called; None: the thread that settles the job calls it
    cdef object cvars              # the context in which the loop calls it
    cdef int removed               # set once, by any thread

    cdef int report(self, Outcome outcome) except -1


cdef class Outcome(Waitlist):
    # Under the guard:
    cdef int state                 # an OutcomeState; threads also read it without the guard, and then read the result
    cdef object value              # written once, before the state says that there is a result
    cdef object error              # the same
    cdef object traceback
    cdef object task               # while it runs
    cdef object loop               # the task's, while it runs
    cdef list callbacks            # of DoneCallbacks; None: add_done_callback calls at once
    cdef object condition          # for concurrent.futures, made when that first asks for it
    cdef readonly list _waiters    # the same
    cdef int announced             # concurrent.futures' waiters know that the job is settled; any thread reads it
    cdef int looked                # a caller saw the error: set once, by any thread
    cdef readonly object _name     # never changes: the task's name; None: asyncio chooses one
    cdef readonly object _owner    # never changes: its `_settled` is called when the job is settled
    cdef public object _intake     # of the context that started it, if one did

    cdef bint set_running(self, object loop) except -1
    cdef bint settle(self, OutcomeState state, object value, object error, OutcomeState highest_state) except -1
    cdef int announce(self) except -1
    cdef int add_callback(self, DoneCallback added) except -1
    cdef bint replace_callbacks(self, list found, Py_ssize_t length, list kept) noexcept
    cdef object get(self, object cancelled)
