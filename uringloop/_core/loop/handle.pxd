from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t, uint8_t

from uringloop._core.engine.ready_queue cimport Runnable


cdef class Handle(Runnable):
    cdef object __weakref__
    # Only the loop's thread uses these, except while the handle is in the inbox. The references are owned, and raw, because
    # NULL costs nothing to set and to drop.
    cdef PyObject *callback      # NULL after a cancel, and after the run if other code has kept the handle
    cdef PyObject *room          # for vectorcall: a bound method puts its self here, in front of the arguments
    cdef PyObject *args[2]       # most callbacks have at most two arguments; if MANY, a tuple of all
    cdef PyObject *cvars         # the contextvars.Context that the callback runs in, or the map to make it of
    cdef PyObject *debug_info    # (loop, stack where it was made, its repr when it was cancelled), if needed; or NULL
    cdef uint8_t nargs           # 0..2, or MANY
    cdef uint8_t cvars_kind      # the kind of `cvars` (own_context.h)
    cdef uint8_t when_is_int     # the timer's time was given as an int, and `when` returns an int
    cdef readonly bint _cancelled
    cdef bint running            # the callback is being called, so a cancel must not drop it yet
    cdef bint repeats            # it runs any number of times, until it is cancelled (a reader, a signal)
    cdef bint threadsafe         # made by call_soon_threadsafe: cancel() in other threads waits while it runs
    cdef bint awaited            # ... and a thread does wait
    cdef unsigned long runner    # the thread that runs it, if it is threadsafe and running

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
    # The base class of Timers, as far as a TimerHandle knows it.
    cdef object _gc              # an object field makes Cython give it, and so Timers, garbage collection
    cdef void note_cancelled(self, TimerHandle handle) noexcept


cdef class TimerHandle(Handle):
    cdef double when_seconds
    cdef PyObject *keeper        # the TimerKeeper that it is scheduled in, which holds it; or NULL


cdef bint WAITS_FOR_SHARED

cdef PyObject *new_handle(PyObject *callback, PyObject **args, Py_ssize_t nargs, PyObject *cvars) except NULL
cdef PyObject *new_timer_handle(double when, PyObject *callback, PyObject **args, Py_ssize_t nargs,
                                PyObject *cvars) except NULL
cdef Handle make_handle(object callback, tuple args, object cvars)
cdef void trim_free_handles() noexcept
