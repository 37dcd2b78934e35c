# Handle and TimerHandle: a scheduled callback with its arguments and its contextvars.Context. Owns the callback and the
# arguments until it has run or is cancelled. Runs the callback, and reports its exception to the loop's exception
# handler. Knows nothing of queues; a cancelled TimerHandle tells its Timers.
#
# A handle is made and dropped for each callback, so handles are written as in C: raw references, a free list, and no
# cyclic garbage collection (if the collector tracked a hundred thousand ready handles, finding each time that all of
# them are alive would cost more than running them). Instead, the owner of handles shows the collector what they refer
# to (ur_visit_owned in guard.h), and a handle drops its callback once it has run or was cancelled, so that a handle
# that a program has kept is never part of a cycle.
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
from uringloop._core.engine.ready_queue cimport Runnable
from uringloop._core.lifetime.counters cimport COUNT_HANDLE, COUNT_TIMER, count_freed, count_made
from uringloop._core.lifetime.guard cimport (
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
    FREE_MOST = 131072  # after a burst; trim_free_handles frees those that later bursts don't need
    FREE_KEPT = 1024

# asyncio's classes, for isinstance. Since Python 3.14, call_soon_threadsafe returns a handle of a separate class, whose
# cancel() and cancelled() do not return in another thread while the callback runs.
cdef object _asyncio_handle = events.Handle
cdef object _asyncio_timer_handle = events.TimerHandle
cdef object _asyncio_shared_handle = getattr(events, "_ThreadSafeHandle", None)
cdef bint WAITS_FOR_SHARED = _asyncio_shared_handle is not None
cdef object _one_ended = threading.Condition()
# Since Python 3.13, asyncio shows the arguments in debug mode only.
cdef bint DESCRIBES_IN_DEBUG = "debug" in inspect.signature(format_helpers._format_callback_source).parameters

# Free handles, linked through `next`. Used only if UR_FREE_LISTS is set, under the GIL.
cdef PyObject *_free = NULL
cdef PyObject *_free_timers = NULL
cdef Py_ssize_t _free_count = 0, _free_most = 0  # the most: 0 or FREE_MOST
cdef Py_ssize_t _free_timer_count = 0
# The lowest counts since a loop last slept: so many free handles were not needed.
cdef Py_ssize_t _free_unused = 0
cdef Py_ssize_t _free_timers_unused = 0


cdef class Handle(Runnable):
    """A scheduled callback, returned by call_soon; has asyncio.Handle's interface."""

    cdef int run(self, object loop) except -1:
        cdef PyObject *result
        cdef bint nested = self.running  # its own callback runs it again: the outer call still needs the callback
        cdef bint dead  # it was cancelled, or has run and dropped its callback
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
        """Called by another thread while the callback runs: wait until it has ended."""
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
        # The program may have kept the handle, and the callback may refer to it, as a coroutine to its timer: a cycle.
        self.drop_callback()

    cdef void drop_callback(self) noexcept:
        """Drop the references to the callback and its arguments."""
        _drop(<PyObject *> self)
        if self.debug_info is not NULL:
            self.forget_loop()

    cdef void leave(self) noexcept:
        """It was cancelled: tell the Timers that it is scheduled in."""

    cdef void forget_loop(self) noexcept:
        # The report of an exception refers to the handle, and the loop's exception handler may have kept the report.
        _, traceback, shown = <tuple> self.debug_info
        self.set_debug_info(None, traceback, shown)

    cdef int report(self, object loop) except -1:
        """The callback raised. SystemExit and KeyboardInterrupt leave the loop; others go to its exception handler."""
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
        """Store information that running the callback doesn't need."""
        cdef PyObject *old = self.debug_info
        notes = (loop, traceback, shown)
        Py_INCREF(notes)
        self.debug_info = <PyObject *> notes
        Py_XDECREF(old)
        return 0

    def cancel(self):
        """Keep the callback from running, if it has not run yet, and drop it and its arguments at once."""
        self.await_end()
        if self.debug_info is not NULL and not self._cancelled:
            _keep_shown(self)
        with cython.critical_section(self):
            if not self._cancelled:
                self._cancelled = True
                self.leave()
                if not self.running:
                    self.drop_callback()  # last: destructors may call this method again, or end the loop

    def cancelled(self):
        self.await_end()
        return self._cancelled

    def get_context(self):
        return self._context

    def _run(self):
        # Doesn't drop the callback: as in asyncio, a loop that has the handle in its queue still runs it.
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
        """For isinstance: programs test for asyncio's classes, which this class can't inherit, as its layout differs."""
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
        """A handle that is scheduled here was cancelled."""


cdef class TimerHandle(Handle):
    """A scheduled timer, returned by call_later and call_at; has asyncio.TimerHandle's interface."""

    cdef void leave(self) noexcept:
        if self.keeper is not NULL:
            (<TimerKeeper> self.keeper).note_cancelled(self)

    @property
    def __class__(self):
        return _asyncio_timer_handle

    def when(self):
        """The time of the loop's clock from which on it runs, never before."""
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

    # Ordered and compared like asyncio's timer handles, which programs keep in heaps and sets.
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
    """Store the callback and its arguments in a new handle."""
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
    """Make a handle for `callback(*args)` in `cvars`, or in a copy of the current context if that is NULL or None.
    Return a new reference. The references passed in are borrowed."""
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
    """The same from Python objects."""
    cdef Handle handle = <Handle> steal(new_handle(<PyObject *> callback, NULL, 0, <PyObject *> cvars))
    handle.set_arguments(args)
    return handle


cdef void _empty(PyObject *handle) noexcept:
    """Drop all references of a handle that has no references left itself, and reset it."""
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
    """Only the owners of handles call this: see the head of this file."""
    return (ur_visit((<Handle> handle).callback, visit, arg) or ur_visit((<Handle> handle).args[0], visit, arg)
            or ur_visit((<Handle> handle).args[1], visit, arg)
            or ur_visit((<Handle> handle).cvars, visit, arg) or ur_visit((<Handle> handle).debug_info, visit, arg))


cdef PyObject *_freed(PyObject *first, Py_ssize_t count) noexcept:
    """Free the first `count` handles of a free list; return the rest of the list."""
    cdef PyObject *handle
    while count > 0:
        handle, count = first, count - 1
        first = (<Handle> handle).next
        PyObject_Free(handle)
    return first


cdef void trim_free_handles() noexcept:
    """The loop is about to sleep: free half of the free handles that were not needed since the last sleep. Only half, so
    that a program with regular bursts finds free handles again after each sleep."""
    global _free, _free_count, _free_unused, _free_timers, _free_timer_count, _free_timers_unused
    if UR_FREE_THREADED:
        return  # there are no free lists, and other threads would read the counts, too
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
