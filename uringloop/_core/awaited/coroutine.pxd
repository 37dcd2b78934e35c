from cpython.object cimport PyObject
from libc.stdint cimport uint8_t

cdef extern from "awaited/coroutine.h":
    int return_value "ur_return_value"(object value) except -1
    void ur_set_send(object type, void *function)


cdef enum CoroutinePhase:
    PHASE_NEW          # nobody has awaited it yet
    PHASE_WAITING      # suspended: what awaits it has our future
    PHASE_OVER         # returned, raised or closed


cdef class Coroutine:
    # The loop's thread only.
    cdef object future         # what the awaiting task waits for, while suspended
    cdef uint8_t phase         # CoroutinePhase

    cdef object first(self)
    cdef object again(self)
    cdef int left(self) except -1
    cdef object advance(self)
    cdef int stop(self) except -1


# Returned by `first` and `again` for "I am suspended; resume me when my future is done".
cdef object WAIT

cdef int sent(object outcome, object future, PyObject **result) noexcept
cdef object as_exception(object kind, object value, object traceback)
cdef int resumed_early() except -1
cdef int returns_coroutine(object function) except -1
cdef void never_awaited(str name) noexcept
