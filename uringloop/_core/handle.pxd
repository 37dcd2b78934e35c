from cpython.object cimport PyObject

from uringloop._core.kernel cimport int64_t, uint8_t, uint64_t
from uringloop._core.ready cimport Runnable


cdef class Handle(Runnable):
    # The loop's thread, but for a handle still on its way through the inbox.
    cdef object callback      # None once it was cancelled
    cdef object arg0          # the first two arguments in place: most callbacks have no more
    cdef object arg1
    cdef tuple more           # all arguments, where there are more than two
    cdef object cvars         # the contextvars.Context the callback runs in
    cdef object loop          # debug mode only, for the reports
    cdef public object _source_traceback
    cdef uint8_t nargs        # 0..2, or 3: they are in `more`
    cdef readonly bint _cancelled

    cdef int report(self, object loop) except -1
    cdef tuple arguments(self)
    cdef int set_arguments(self, tuple args) except -1


cdef class TimerKeeper:
    # What a TimerHandle knows of the Timers it is in.
    cdef object _gc              # makes it, and so Timers, a type the cyclic collector visits
    cdef void note_cancelled(self, TimerHandle handle) noexcept


cdef class TimerHandle(Handle):
    cdef double when_seconds
    cdef object when_object      # what the caller gave, where it was not a float
    cdef TimerKeeper keeper      # while scheduled, else None


cdef Handle make_handle(object callback, PyObject **args, Py_ssize_t nargs, object cvars)
cdef TimerHandle make_timer_handle(double when, object callback, PyObject **args, Py_ssize_t nargs, object cvars)
