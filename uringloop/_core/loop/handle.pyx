# Handle and TimerHandle: a callback that will be run once, in its contextvars.Context. Owns the callback
# and its arguments until it is cancelled or dropped. Runs it, and reports what it raises to the loop's
# exception handler. Knows nothing of queues; a cancelled TimerHandle tells its Timers.
#
# Handles are made and dropped once a callback, so they are written as C would: raw references, a free list, and
# no part in cyclic garbage collection (tracking a hundred thousand ready handles, to find each time that all of
# them are alive, costs more than running them). In its place, whoever owns handles shows the collector what they
# refer to (ur_visit_owned in guard.h), and a handle lets go of its callback once it has run or was cancelled, so
# that one kept by somebody is never part of a cycle.
cimport cython
from cpython.object cimport Py_EQ, Py_GT, Py_LE, Py_LT, Py_NE, PyObject, traverseproc, visitproc
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_REFCNT, Py_XDECREF, Py_XINCREF

import inspect
import threading
from asyncio import events, format_helpers

from libc.stdint cimport uint8_t

from uringloop._core.cpython.canaries import relied_on
from uringloop._core.cpython.own_context cimport (
    ur_context_copy, ur_context_enter, ur_context_leave, ur_context_show, ur_contexts_are_as_known, ur_lend_contexts,
)
from uringloop._core.engine.ready cimport Runnable
from uringloop._core.objects.counters cimport COUNT_HANDLE, COUNT_TIMER, count_freed, count_made
from uringloop._core.objects.guard cimport (
    URINGLOOP_DEBUG, UR_FREE_LISTS, UR_FREE_THREADED, ur_may_reuse, ur_only_core_makes, ur_set_dealloc,
    ur_set_traverse,
)

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept nogil
    size_t PY_VECTORCALL_ARGUMENTS_OFFSET
    PyObject *PyObject_Vectorcall(PyObject *callable, PyObject **args, size_t nargsf, PyObject *kwnames) noexcept
    PyObject *PyObject_CallObject(PyObject *callable, PyObject *args) noexcept
    PyObject *PyTuple_New(Py_ssize_t size) except NULL
    void PyTuple_SET_ITEM(PyObject *items, Py_ssize_t i, PyObject *item) noexcept
    void PyObject_Init(PyObject *self, PyTypeObject *type) noexcept
    void PyObject_Free(void *memory) noexcept
    ctypedef struct PyTypeObject:
        pass

cdef extern from *:
    """
    static inline int ur_already_raised(void) { return -1; }
    static inline PyObject *ur_steal(PyObject *owned) { return owned; }
    static inline int ur_visit(PyObject *object, visitproc visit, void *arg) { return object ? visit(object, arg) : 0; }
    static inline void ur_clear_weakrefs(PyObject *object) {
        if (*(PyObject **)((char *)object + Py_TYPE(object)->tp_weaklistoffset)) PyObject_ClearWeakRefs(object);
    }
    """
    void ur_clear_weakrefs(PyObject *object) noexcept
    int already_raised "ur_already_raised"() except -1  # Cython has no name for "raise what is set"
    object steal "ur_steal"(PyObject *owned)             # ... nor for taking over a reference
    int ur_visit(PyObject *object, visitproc visit, void *arg) noexcept

cdef enum:
    MANY = 3
    FREE_MOST = 131072  # after a burst; trim_free_handles gives back what the next ones do not need
    FREE_KEPT = 1024

# asyncio's classes, for isinstance. Since Python 3.14 a handle of call_soon_threadsafe is one of a class of its own,
# whose cancel() and cancelled() do not return to another thread while the callback runs.
cdef object _asyncio_handle = events.Handle
cdef object _asyncio_timer_handle = events.TimerHandle
cdef object _asyncio_shared_handle = getattr(events, "_ThreadSafeHandle", None)
cdef bint WAITS_FOR_SHARED = _asyncio_shared_handle is not None
cdef object _one_ended = threading.Condition()
# Since Python 3.13 arguments are shown in debug mode only.
cdef bint DESCRIBES_IN_DEBUG = "debug" in inspect.signature(format_helpers._format_callback_source).parameters

# Free handles, linked through `next`. Only where UR_FREE_LISTS says so, and under the GIL.
cdef PyObject *_free = NULL
cdef PyObject *_free_timers = NULL
cdef Py_ssize_t _free_count = 0, _free_most = 0  # the most: 0 or FREE_MOST
cdef Py_ssize_t _free_timer_count = 0
# The fewest there were since a loop last slept: so many nobody needed.
cdef Py_ssize_t _free_unused = 0
cdef Py_ssize_t _free_timers_unused = 0


cdef class Handle(Runnable):
    """What call_soon returns; asyncio.Handle's interface."""

    cdef int run(self, object loop) except -1:
        cdef PyObject *result
        cdef bint nested = self.running  # its own callback runs it: what the outer call calls stays
        cdef bint dead  # or it has run, and was let go of
        if UR_FREE_THREADED:
            with cython.critical_section(self):
                dead = self._cancelled or self.callback is NULL
                self.running = nested or not dead
        else:
            dead = self._cancelled or self.callback is NULL
            self.running = nested or not dead
        if dead:
            return 0
        if self.threadsafe:
            self.runner = PyThread_get_thread_ident()
        if ur_context_enter(&self.cvars, &self.cvars_kind) < 0:
            result = NULL
        else:
            if self.nargs < MANY:
                result = PyObject_Vectorcall(self.callback, self.args, self.nargs | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL)
            else:
                result = PyObject_CallObject(self.callback, self.args[0])
            ur_context_leave(&self.cvars, &self.cvars_kind)
        if UR_FREE_THREADED:
            with cython.critical_section(self):
                self.running = nested
        else:
            self.running = nested
        if result is NULL:
            self.report(loop)
        else:
            Py_DECREF(<object> result)
        if self.awaited:
            self.tell_awaiting()
        if (Py_REFCNT(self) > 1 and self.debug_info is NULL or self._cancelled) and not nested:
            self.drop_callback()
        return 0

    cdef int tell_awaiting(self) except -1:
        with _one_ended:
            _one_ended.notify_all()
        return 0

    cdef int await_end(self) except -1:
        """Another thread's question, while the callback runs: not answered before it has ended."""
        if not self.threadsafe or not self.running or self.runner == PyThread_get_thread_ident():
            return 0
        with _one_ended:
            with cython.critical_section(self):
                self.awaited = self.running
            while self.running:
                _one_ended.wait()
        return 0

    cdef object culprit(self):
        return self

    cdef void dropped(self) noexcept:
        # Somebody may have kept it, and what it refers to may refer to that: a coroutine to its timer.
        self.drop_callback()

    cdef void drop_callback(self) noexcept:
        """Refer to what is to be called no more."""
        _drop(<PyObject *> self)
        if self.debug_info is not NULL:
            self.forget_loop()

    cdef void leave(self) noexcept:
        """It was cancelled: tell what it is scheduled in."""

    cdef void forget_loop(self) noexcept:
        # A report of what the handle raised has the handle, and the loop's exception handler may have kept the report.
        _, traceback, shown = <tuple> self.debug_info
        self.set_debug_info(None, traceback, shown)

    cdef int report(self, object loop) except -1:
        """The callback raised. SystemExit and KeyboardInterrupt leave the loop; all else goes to its handler."""
        try:
            already_raised()
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            described = _describe(self, loop)
            context = {"message": f"Exception in callback {described}", "exception": error, "handle": self}
            if self._source_traceback:
                context["source_traceback"] = self._source_traceback
            loop.call_exception_handler(context)
        return 0

    cdef tuple arguments(self):
        if self.nargs == MANY:
            return <tuple> self.args[0]
        return tuple([<object> self.args[i] for i in range(self.nargs)])

    cdef int set_arguments(self, tuple args) except -1:
        cdef Py_ssize_t i, nargs = len(args)
        self.nargs = <uint8_t> min(nargs, MANY)
        if nargs >= MANY:
            self.args[0] = <PyObject *> args
            Py_INCREF(args)
            return 0
        for i in range(nargs):
            self.args[i] = <PyObject *> args[i]
            Py_XINCREF(self.args[i])
        return 0

    cdef int set_debug_info(self, object loop, object traceback, object shown) except -1:
        """Remember more than running takes."""
        cdef PyObject *old = self.debug_info
        notes = (loop, traceback, shown)
        Py_INCREF(notes)
        self.debug_info = <PyObject *> notes
        Py_XDECREF(old)
        return 0

    def cancel(self):
        """Not run, if it has not been yet; the callback and its arguments are dropped at once."""
        self.await_end()
        if self.debug_info is not NULL and not self._cancelled:
            _keep_shown(self)
        with cython.critical_section(self):
            if not self._cancelled:
                self._cancelled = True
                self.leave()
                if not self.running:
                    self.drop_callback()  # last: what dies with the callback may come back here, or end the loop

    def cancelled(self):
        self.await_end()
        return self._cancelled

    def get_context(self):
        return self._context

    def _run(self):
        # The loop that has it in a queue calls it all the same, as asyncio's does: nothing is let go of here.
        cdef bint nested = self.running
        with cython.critical_section(self):
            self.running = True
        try:
            self.run(self._loop or events._get_running_loop())
        finally:
            with cython.critical_section(self):
                self.running = nested
            if self.awaited:
                self.tell_awaiting()
            if self._cancelled and not nested:
                self.drop_callback()

    @property
    def __class__(self):
        """For isinstance: programs ask for asyncio's classes, whose layout is not ours to have."""
        return _asyncio_shared_handle if self.threadsafe else _asyncio_handle

    @property
    def _callback(self):
        return None if self.callback is NULL or self._cancelled else <object> self.callback

    @property
    def _args(self):
        return None if self._cancelled else self.arguments()

    @property
    def _context(self):
        with cython.critical_section(self):
            ur_context_show(&self.cvars, &self.cvars_kind)
            return <object> self.cvars

    @property
    def _loop(self):
        return None if self.debug_info is NULL else (<tuple> self.debug_info)[0]

    @property
    def _source_traceback(self):
        return None if self.debug_info is NULL else (<tuple> self.debug_info)[1]

    def _repr_info(self):
        info = [self.__class__.__name__]
        if self._cancelled:
            info.append("cancelled")
        if self.callback is not NULL and not self._cancelled:
            info.append(_describe(self, self._loop))
        traceback = self._source_traceback
        if traceback:
            frame = traceback[len(traceback) - 1]
            info.append(f"created at {frame[0]}:{frame[1]}")
        return info

    def __repr__(self):
        shown = None if self.debug_info is NULL else (<tuple> self.debug_info)[2]
        return f"<{' '.join(self._repr_info())}>" if shown is None else shown


cdef int _keep_shown(Handle handle) except -1:
    loop, traceback, _ = <tuple> handle.debug_info  # in debug mode its repr shows what it would have called
    if loop is not None and loop.get_debug():
        name, *rest = handle._repr_info()
        handle.set_debug_info(loop, traceback, f"<{' '.join([name, 'cancelled', *rest])}>")
    return 0


cdef object _describe(Handle handle, object loop):
    named = {"debug": loop is not None and loop.get_debug()} if DESCRIBES_IN_DEBUG else {}
    return format_helpers._format_callback_source(handle._callback, handle.arguments(), **named)


cdef class TimerKeeper:
    cdef void note_cancelled(self, TimerHandle handle) noexcept:
        """The handle, scheduled here, was cancelled."""


cdef class TimerHandle(Handle):
    """What call_later and call_at return; asyncio.TimerHandle's interface."""

    cdef void leave(self) noexcept:
        if self.keeper is not NULL:
            (<TimerKeeper> self.keeper).note_cancelled(self)

    @property
    def __class__(self):
        return _asyncio_timer_handle

    def when(self):
        """The time, by the loop's clock, before which it does not run."""
        return int(self.when_seconds) if self.when_is_int else self.when_seconds

    @property
    def _when(self):
        return self.when()

    @property
    def _scheduled(self):
        return self.keeper is not NULL

    def _repr_info(self):
        info = Handle._repr_info(self)
        info.insert(2 if self._cancelled else 1, f"when={self.when()}")
        return info

    # Ordered and compared like asyncio's, which programs keep in heaps and sets of their own.
    def __hash__(self):
        return hash(self.when())

    def __richcmp__(self, other, int how):
        cdef bint equal
        if not isinstance(other, TimerHandle):
            return NotImplemented
        cdef double mine = self.when_seconds, its = (<TimerHandle> other).when_seconds
        equal = (mine == its and how != Py_LT and how != Py_GT and self._callback == other._callback
                 and self._args == other._args and self._cancelled == other._cancelled)
        if how == Py_EQ or how == Py_NE:
            return equal == (how == Py_EQ)
        return (mine < its if how == Py_LT or how == Py_LE else mine > its) or equal


cdef int _set(PyObject *handle, PyObject *callback, PyObject **args, Py_ssize_t nargs) except -1:
    """Give a new handle what it calls."""
    cdef Py_ssize_t i
    cdef PyObject *items
    (<Handle> handle).callback = callback
    Py_INCREF(<object> callback)
    if nargs >= MANY:
        items = PyTuple_New(nargs)
        for i in range(nargs):
            Py_INCREF(<object> args[i])
            PyTuple_SET_ITEM(items, i, args[i])
        (<Handle> handle).args[0] = items
        (<Handle> handle).nargs = MANY
        return 0
    (<Handle> handle).nargs = <uint8_t> nargs
    if nargs > 0:
        Py_INCREF(<object> args[0])
        (<Handle> handle).args[0] = args[0]
    if nargs > 1:
        Py_INCREF(<object> args[1])
        (<Handle> handle).args[1] = args[1]
    return 0


cdef inline int _set_context(PyObject *handle, PyObject *cvars) except -1:
    if cvars is NULL or cvars == <PyObject *> None:
        (<Handle> handle).cvars = ur_context_copy(&(<Handle> handle).cvars_kind)
    else:
        Py_INCREF(<object> cvars)
        (<Handle> handle).cvars = cvars
    return 0


cdef inline PyObject *_owned(Handle handle) noexcept:
    Py_INCREF(handle)
    return <PyObject *> handle


cdef PyObject *new_handle(PyObject *callback, PyObject **args, Py_ssize_t nargs, PyObject *cvars) except NULL:
    """A handle for `callback(*args)` in `cvars`, or in a copy of the current context where that is NULL or None:
    a new reference. The four references passed in are borrowed."""
    global _free, _free_count, _free_unused
    cdef PyObject *handle = _free
    if handle is not NULL:
        _free = (<Handle> handle).next
        _free_count -= 1
        if _free_count < _free_unused:
            _free_unused = _free_count
        PyObject_Init(handle, <PyTypeObject *> Handle)
    else:
        handle = _owned(Handle.__new__(Handle))
    if URINGLOOP_DEBUG:
        count_made(COUNT_HANDLE)
    _set(handle, callback, args, nargs)
    _set_context(handle, cvars)
    return handle


cdef PyObject *new_timer_handle(double when, PyObject *callback, PyObject **args, Py_ssize_t nargs,
                                PyObject *cvars) except NULL:
    global _free_timers, _free_timer_count, _free_timers_unused
    cdef PyObject *handle = _free_timers
    if handle is not NULL:
        _free_timers = (<Handle> handle).next
        _free_timer_count -= 1
        if _free_timer_count < _free_timers_unused:
            _free_timers_unused = _free_timer_count
        PyObject_Init(handle, <PyTypeObject *> TimerHandle)
    else:
        handle = _owned(TimerHandle.__new__(TimerHandle))
    if URINGLOOP_DEBUG:
        count_made(COUNT_HANDLE)
        count_made(COUNT_TIMER)
    _set(handle, callback, args, nargs)
    _set_context(handle, cvars)
    (<TimerHandle> handle).when_seconds = when
    return handle


cdef Handle make_handle(object callback, tuple args, object cvars):
    """The same from Python's values."""
    cdef Handle handle = <Handle> steal(new_handle(<PyObject *> callback, NULL, 0, <PyObject *> cvars))
    handle.set_arguments(args)
    return handle


cdef void _empty(PyObject *handle) noexcept:
    """Drop all references of a handle nobody refers to any more, and leave it as new."""
    cdef PyObject *cvars = (<Handle> handle).cvars
    cdef PyObject *notes = (<Handle> handle).debug_info
    ur_clear_weakrefs(handle)
    (<Handle> handle).cvars = (<Handle> handle).debug_info = NULL
    (<Handle> handle).cvars_kind = (<Handle> handle).when_is_int = 0
    (<Handle> handle)._cancelled = (<Handle> handle).repeats = False
    (<Handle> handle).threadsafe = (<Handle> handle).awaited = False
    if (<Handle> handle).callback is not NULL:
        _drop(handle)
    Py_XDECREF(cvars)
    Py_XDECREF(notes)
    if URINGLOOP_DEBUG:
        count_freed(COUNT_HANDLE)


cdef inline void _drop(PyObject *handle) noexcept:
    cdef PyObject *callback = (<Handle> handle).callback
    cdef PyObject *first = (<Handle> handle).args[0]
    cdef PyObject *second = (<Handle> handle).args[1]
    (<Handle> handle).callback = (<Handle> handle).args[0] = (<Handle> handle).args[1] = NULL
    (<Handle> handle).nargs = 0
    Py_XDECREF(callback)
    Py_XDECREF(first)
    Py_XDECREF(second)


cdef void _dealloc(PyObject *handle) noexcept:
    global _free, _free_count
    _empty(handle)
    if UR_FREE_LISTS and _free_count < _free_most:
        (<Handle> handle).next = _free
        _free = handle
        _free_count += 1
    else:
        PyObject_Free(handle)


cdef void _dealloc_timer(PyObject *handle) noexcept:
    global _free_timers, _free_timer_count
    _empty(handle)
    if URINGLOOP_DEBUG:
        count_freed(COUNT_TIMER)
    if UR_FREE_LISTS and _free_timer_count < _free_most:
        (<Handle> handle).next = _free_timers
        _free_timers = handle
        _free_timer_count += 1
    else:
        PyObject_Free(handle)


cdef int _traverse(PyObject *handle, visitproc visit, void *arg) noexcept:
    """Called by owners only: see the head of this file."""
    return (ur_visit((<Handle> handle).callback, visit, arg) or ur_visit((<Handle> handle).args[0], visit, arg)
            or ur_visit((<Handle> handle).args[1], visit, arg)
            or ur_visit((<Handle> handle).cvars, visit, arg) or ur_visit((<Handle> handle).debug_info, visit, arg))


cdef PyObject *_freed(PyObject *first, Py_ssize_t count) noexcept:
    """Give back the first `count` of a list of free handles; what is left of it."""
    cdef PyObject *handle
    while count > 0:
        handle, count = first, count - 1
        first = (<Handle> handle).next
        PyObject_Free(handle)
    return first


cdef void trim_free_handles() noexcept:
    """The loop is going to sleep: give back half of what a burst left behind and nobody has needed since the last sleep.
    What comes in bursts, with a sleep after each, finds its handles again."""
    global _free, _free_count, _free_unused, _free_timers, _free_timer_count, _free_timers_unused
    if UR_FREE_THREADED:
        return  # there are none, and other threads would look at the counts too
    cdef Py_ssize_t excess = max(_free_unused - FREE_KEPT, 0) // 2
    cdef Py_ssize_t timers = max(_free_timers_unused - FREE_KEPT, 0) // 2
    _free, _free_count = _freed(_free, excess), _free_count - excess
    _free_timers, _free_timer_count = _freed(_free_timers, timers), _free_timer_count - timers
    _free_unused, _free_timers_unused = _free_count, _free_timer_count


if relied_on("own_context", ur_contexts_are_as_known()):
    ur_lend_contexts()
_free_most = FREE_MOST if ur_may_reuse(Handle) and ur_may_reuse(TimerHandle) else 0
ur_set_traverse(Handle, <traverseproc> _traverse)
ur_set_traverse(TimerHandle, <traverseproc> _traverse)
ur_set_dealloc(Handle, _dealloc)
ur_set_dealloc(TimerHandle, _dealloc_timer)
ur_only_core_makes(Handle)
ur_only_core_makes(TimerHandle)
