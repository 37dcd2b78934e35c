# Handle and TimerHandle: a callback that will be run once, in its contextvars.Context. Owns the callback
# and its arguments until it is cancelled or dropped. Runs it, and reports what it raises to the loop's
# exception handler. Knows nothing of queues; a cancelled TimerHandle tells its Timers.
cimport cython
from cpython.contextvars cimport PyContext_CopyCurrent
from cpython.object cimport PyObject
from cpython.ref cimport Py_REFCNT, Py_XDECREF

from asyncio import format_helpers
import sys

from uringloop._core.counters cimport COUNT_HANDLE, COUNT_TIMER, count_freed, count_made
from uringloop._core.kernel cimport URINGLOOP_DEBUG, UR_FREE_LISTS, uint8_t
from uringloop._core.ready cimport Runnable

cdef extern from "Python.h":
    size_t PY_VECTORCALL_ARGUMENTS_OFFSET
    PyObject *PyObject_Vectorcall(PyObject *callable, PyObject **args, size_t nargsf, PyObject *kwnames) noexcept
    PyObject *PyObject_CallObject(PyObject *callable, PyObject *args) noexcept

cdef extern from *:
    """
    UR_DEFINE_FREE_LIST(ur_handles)
    UR_DEFINE_FREE_LIST(ur_timer_handles)
    """
    void ur_handles_install(object type) noexcept
    void ur_handles_trim() noexcept
    void ur_timer_handles_install(object type) noexcept
    void ur_timer_handles_trim() noexcept
    void PyObject_GC_Track(object) noexcept
    bint PyObject_GC_IsTracked(object) noexcept

cdef enum:
    MANY = 3

cdef extern from *:
    """
    static inline int ur_already_raised(void) { return -1; }
    """
    int already_raised "ur_already_raised"() except -1  # Cython has no name for "raise what is set"
    int ur_context_enter "PyContext_Enter"(PyObject *) noexcept
    int ur_context_exit "PyContext_Exit"(PyObject *) noexcept  # leaves a raised exception as it is


cdef class Handle(Runnable):
    """What call_soon returns; asyncio.Handle's interface."""

    def __cinit__(self):
        if URINGLOOP_DEBUG:
            count_made(COUNT_HANDLE)

    def __dealloc__(self):
        if URINGLOOP_DEBUG:
            count_freed(COUNT_HANDLE)

    cdef int run(self, object loop) except -1:
        cdef PyObject *stack[3]
        cdef PyObject *result
        cdef object callback, arg0, arg1
        cdef size_t nargs
        with cython.critical_section(self):
            if self._cancelled:
                return 0
            # References of our own: the callback may cancel its own handle, which drops the handle's.
            callback, arg0, arg1, nargs = self.callback, self.arg0, self.arg1, self.nargs
        if ur_context_enter(<PyObject *> self.cvars) < 0:
            return self.report(loop)
        if nargs < MANY:
            # The free slot in front is what lets a bound method put its self there instead of copying.
            stack[1] = <PyObject *> arg0
            stack[2] = <PyObject *> arg1
            result = PyObject_Vectorcall(<PyObject *> callback, &stack[1],
                                         nargs | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL)
        else:
            result = PyObject_CallObject(<PyObject *> callback, <PyObject *> arg1)
        ur_context_exit(<PyObject *> self.cvars)
        if result is NULL:
            self.report(loop)
        else:
            Py_XDECREF(result)
        if UR_FREE_LISTS and self.notes is None:
            self.let_go()
        return 0

    cdef object culprit(self):
        return self

    cdef void let_go(self) noexcept:
        """Refer to nothing any more: the collector does not see this object (guard.h), so somebody's handle of a
        callback that has run must not be part of a cycle. Nothing to do where the handle is dropped next."""
        if Py_REFCNT(self) > 2:
            self.callback = self.arg0 = self.arg1 = None
            self.nargs = 0

    cdef int report(self, object loop) except -1:
        """The callback raised. SystemExit and KeyboardInterrupt leave the loop; all else goes to its handler."""
        try:
            already_raised()
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            described = format_helpers._format_callback_source(self.callback, self.arguments())
            context = {"message": f"Exception in callback {described}", "exception": error, "handle": self}
            if self._source_traceback:
                context["source_traceback"] = self._source_traceback
            loop.call_exception_handler(context)
        return 0

    cdef tuple arguments(self):
        if self.nargs == 0:
            return ()
        if self.nargs == 1:
            return (self.arg0,)
        if self.nargs == 2:
            return (self.arg0, self.arg1)
        return self.arg1

    cdef int set_arguments(self, tuple args) except -1:
        cdef Py_ssize_t nargs = len(args)
        self.nargs = <uint8_t> min(nargs, MANY)
        if nargs >= MANY:
            self.arg1 = args
            return 0
        if nargs > 0:
            self.arg0 = args[0]
        if nargs > 1:
            self.arg1 = args[1]
        return 0

    cdef int note(self, object loop, object traceback) except -1:
        """Remember more than running takes. Such a handle is an ordinary object for the collector."""
        self.notes = (loop, traceback)
        if not PyObject_GC_IsTracked(self):
            PyObject_GC_Track(self)
        return 0

    def cancel(self):
        """Not run, if it has not been yet; the callback and its arguments are dropped at once."""
        with cython.critical_section(self):
            if not self._cancelled:
                self._cancelled = True
                self.callback = self.arg0 = self.arg1 = None
                self.nargs = 0

    def cancelled(self):
        return self._cancelled

    def get_context(self):
        return self.cvars

    def _run(self):
        self.run(self._loop)

    @property
    def _callback(self):
        return self.callback

    @property
    def _args(self):
        return None if self._cancelled else self.arguments()

    @property
    def _context(self):
        return self.cvars

    @property
    def _loop(self):
        return None if self.notes is None else self.notes[0]

    @property
    def _source_traceback(self):
        return None if self.notes is None else self.notes[1]

    def _repr_info(self):
        info = [type(self).__name__]
        if self._cancelled:
            info.append("cancelled")
        if self.callback is not None:
            info.append(format_helpers._format_callback_source(self.callback, self.arguments()))
        if self._source_traceback:
            frame = self._source_traceback[len(self._source_traceback) - 1]
            info.append(f"created at {frame[0]}:{frame[1]}")
        return info

    def __repr__(self):
        return f"<{' '.join(self._repr_info())}>"


cdef class TimerKeeper:
    cdef void note_cancelled(self, TimerHandle handle) noexcept:
        """The handle, scheduled here, was cancelled and emptied."""


cdef class TimerHandle(Handle):
    """What call_later and call_at return; asyncio.TimerHandle's interface."""

    def __cinit__(self):
        if URINGLOOP_DEBUG:
            count_made(COUNT_TIMER)

    def __dealloc__(self):
        if URINGLOOP_DEBUG:
            count_freed(COUNT_TIMER)

    def cancel(self):
        if not self._cancelled:
            Handle.cancel(self)
            if self.keeper is not None:
                self.keeper.note_cancelled(self)

    def when(self):
        """The time, by the loop's clock, before which it does not run."""
        return self.when_seconds

    @property
    def _when(self):
        return self.when()

    @property
    def _scheduled(self):
        return self.keeper is not None

    def _repr_info(self):
        info = Handle._repr_info(self)
        info.insert(2 if self._cancelled else 1, f"when={self.when()}")
        return info

    # Ordered and compared like asyncio's, which programs keep in heaps and sets of their own.
    def __hash__(self):
        return hash(self.when())

    def __eq__(self, other):
        if not isinstance(other, TimerHandle):
            return NotImplemented
        return (self.when() == other.when() and self._callback == other._callback
                and self._args == other._args and self._cancelled == other._cancelled)

    def __lt__(self, other):
        return self.when() < other.when() if isinstance(other, TimerHandle) else NotImplemented

    def __le__(self, other):
        return self.when() <= other.when() if isinstance(other, TimerHandle) else NotImplemented

    def __gt__(self, other):
        return self.when() > other.when() if isinstance(other, TimerHandle) else NotImplemented

    def __ge__(self, other):
        return self.when() >= other.when() if isinstance(other, TimerHandle) else NotImplemented


cdef inline int _set(Handle handle, object callback, PyObject **args, Py_ssize_t nargs, object cvars) except -1:
    cdef Py_ssize_t i
    handle.callback = callback
    handle.cvars = PyContext_CopyCurrent() if cvars is None else cvars
    if nargs < MANY:
        handle.nargs = <uint8_t> nargs
        if nargs > 0:
            handle.arg0 = <object> args[0]
        if nargs > 1:
            handle.arg1 = <object> args[1]
    else:
        handle.nargs = MANY
        handle.arg1 = tuple([<object> args[i] for i in range(nargs)])
    return 0


cdef Handle make_handle(object callback, PyObject **args, Py_ssize_t nargs, object cvars):
    """A handle for `callback(*args)` in `cvars`, or in a copy of the current context where that is None."""
    cdef Handle handle = Handle.__new__(Handle)
    _set(handle, callback, args, nargs, cvars)
    return handle


cdef TimerHandle make_timer_handle(double when, object callback, PyObject **args, Py_ssize_t nargs, object cvars):
    cdef TimerHandle handle = TimerHandle.__new__(TimerHandle)
    _set(handle, callback, args, nargs, cvars)
    handle.when_seconds = when
    return handle


cdef void trim_free_handles() noexcept:
    """The loop is going to sleep: give back half of what a burst left behind."""
    ur_handles_trim()
    ur_timer_handles_trim()


ur_handles_install(<object> Handle)
ur_timer_handles_install(<object> TimerHandle)
