from cpython.object cimport PyObject
from libc.stdint cimport uint8_t

ctypedef int (*step_function)(object self, object value, PyObject **result) except -1
ctypedef int (*stop_function)(object self) except -1

cdef extern from "awaitables/coroutine.h":
    ctypedef struct ur_coroutine:
        Py_ssize_t phase
        step_function step
        stop_function stop
    ctypedef PyObject *(*iternextfunc)(PyObject *) noexcept
    PyObject *ur_stop(PyObject *value) noexcept
    void ur_set_iternext(object type, iternextfunc next) noexcept


cdef enum CoroutinePhase:
    PHASE_NEW          # not awaited yet
    PHASE_PAUSED       # awaited, but not started: it lets other tasks run first
    PHASE_WAITING      # suspended: the task that awaits it waits for our future
    PHASE_OVER         # returned, raised or closed


cdef class Coroutine:
    # Only the loop's thread uses these fields.
    cdef object future         # the future that the awaiting task waits for, while suspended
    cdef uint8_t phase         # CoroutinePhase

    cdef object first(self)
    cdef object again(self)
    cdef int left(self) except -1
    cdef object advance(self)
    cdef int stop(self) except -1


# `first` and `again` return this to suspend until `future` is done.
cdef object WAIT

cdef int make_coroutines(
    tuple kinds, ur_coroutine *protocol, void *phase, step_function step, stop_function stop) except -1
cdef int stepped(object outcome, object future, PyObject **result) noexcept
cdef object end_with(object coroutine, object kind, object value, object traceback)
cdef object as_exception(object kind, object value, object traceback)
cdef int reused() except -1
cdef int resumed_early() except -1
cdef int returns_coroutine(object function) except -1
cdef str name_of(object coroutine)
cdef void never_awaited(str name) noexcept
cdef void warn_never_awaited(str what) noexcept
