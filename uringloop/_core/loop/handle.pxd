from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t, uint8_t

from uringloop._core.engine.ready cimport Runnable


cdef class Handle(Runnable):
    cdef object __weakref__
    # The loop's thread, but for a handle still on its way through the inbox. The references are owned, and raw:
    # NULL costs nothing to set and nothing to drop.
    cdef PyObject *callback      # NULL once it was cancelled, or has run and was kept by somebody
    cdef PyObject *room          # vectorcall's: a bound method puts its self here, in front of the arguments
    cdef PyObject *args[2]       # most callbacks have no more; the tuple of all where there are MANY
    cdef PyObject *cvars         # the contextvars.Context the callback runs in, or what it will be made of
    cdef PyObject *debug_info    # (loop, where it was made, its repr when it was cancelled): debug mode and the like
    cdef uint8_t nargs           # 0..2, or MANY
    cdef uint8_t cvars_kind      # whose `cvars` are (own_context.h)
    cdef uint8_t when_is_int     # a timer whose time was given as an int, which its `when` tells
    cdef readonly bint _cancelled
    cdef bint running            # what is being called must not be dropped: a cancel waits
    cdef bint repeats            # runs any number of times, until it is cancelled (a reader, a signal)
    cdef bint threadsafe         # made by call_soon_threadsafe: other threads' questions wait while it runs
    cdef bint awaited            # ... and one does
    cdef unsigned long runner    # the thread that runs it, where it is shared and running

    cdef int report(self, object loop) except -1
    cdef int tell_awaiting(self) except -1
    cdef int await_end(self) except -1
    cdef tuple arguments(self)
    cdef int set_arguments(self, tuple args) except -1
    cdef int set_debug_info(self, object loop, object traceback, object shown) except -1
    cdef void drop_callback(self) noexcept
    cdef void leave(self) noexcept
    cdef void forget_loop(self) noexcept


cdef class TimerKeeper:
    # What a TimerHandle knows of the Timers it is in.
    cdef object _gc              # makes it, and so Timers, a type the cyclic collector visits
    cdef void note_cancelled(self, TimerHandle handle) noexcept


cdef class TimerHandle(Handle):
    cdef double when_seconds
    cdef PyObject *keeper        # the TimerKeeper it is scheduled in, which holds it; else NULL


cdef bint WAITS_FOR_SHARED

cdef PyObject *new_handle(PyObject *callback, PyObject **args, Py_ssize_t nargs, PyObject *cvars) except NULL
cdef PyObject *new_timer_handle(double when, PyObject *callback, PyObject **args, Py_ssize_t nargs,
                                PyObject *cvars) except NULL
cdef Handle make_handle(object callback, tuple args, object cvars)
cdef void trim_free_handles() noexcept
