from cpython.object cimport PyObject

from uringloop._core.kernel cimport int64_t, uint8_t, uint64_t
from uringloop._core.ready cimport Runnable


cdef class Handle(Runnable):
    # The loop's thread, but for a handle still on its way through the inbox.
    cdef uint8_t nargs        # 0..2, or MANY
    cdef readonly bint _cancelled
    cdef object callback      # None once it was cancelled, or has run and was kept by somebody
    cdef object arg0          # the first two arguments in place: most callbacks have no more
    cdef object arg1          # or the tuple of MANY
    cdef object cvars         # the contextvars.Context the callback runs in
    cdef object notes         # (loop, where it was made): debug mode and the like; None for the most

    cdef int report(self, object loop) except -1
    cdef tuple arguments(self)
    cdef int set_arguments(self, tuple args) except -1
    cdef int note(self, object loop, object traceback) except -1
    cdef void let_go(self) noexcept


cdef class TimerKeeper:
    # What a TimerHandle knows of the Timers it is in.
    cdef object _gc              # makes it, and so Timers, a type the cyclic collector visits
    cdef void note_cancelled(self, TimerHandle handle) noexcept


cdef class TimerHandle(Handle):
    cdef double when_seconds
    cdef TimerKeeper keeper      # while scheduled, else None


cdef Handle make_handle(object callback, PyObject **args, Py_ssize_t nargs, object cvars)
cdef TimerHandle make_timer_handle(double when, object callback, PyObject **args, Py_ssize_t nargs, object cvars)
cdef void trim_free_handles() noexcept
