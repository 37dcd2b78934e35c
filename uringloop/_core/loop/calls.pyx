# The call_soon family: call_soon, call_later, call_at and call_soon_threadsafe, as methods of Loop. They read the arguments
# straight from the caller's stack (vectorcall), make a handle, and put it into the loop's queue, timers or inbox.
import sys

from cpython.object cimport PyObject
from cpython.ref cimport Py_XINCREF

from asyncio import format_helpers

from uringloop._core.engine.ready_queue cimport Runnable, ready_push_owned
from uringloop._core.kernel.abi cimport ur_now_ns
from uringloop._core.loop.handle cimport WAITS_FOR_SHARED, Handle, TimerHandle, new_handle, new_timer_handle
from uringloop._core.loop.loop cimport Loop, runs_here
from uringloop._core.loop.timers cimport deadline_of
from uringloop._core.lifetime.guard cimport ur_add_fast_method, ur_load_flag

cdef extern from "Python.h":
    double PyLong_AsDouble(object number) except? -1
    PyObject **PySequence_Fast_ITEMS(list items)

cdef extern from *:
    """
    static inline PyObject *ur_steal(PyObject *owned) { return owned; }
    """
    object steal "ur_steal"(PyObject *owned)  # the reference becomes the result's
    int PyUnicode_Compare(PyObject *left, PyObject *right) noexcept  # can't fail here: the names of arguments are str
    Py_ssize_t PyTuple_GET_SIZE(PyObject *items) noexcept
    PyObject *PyTuple_GET_ITEM(PyObject *items, Py_ssize_t i) noexcept

cdef str _CONTEXT = sys.intern("context")  # callers' names are interned, too, so they are compared by identity first
cdef tuple _ONLY_CONTEXT = (_CONTEXT,)
cdef tuple _CALLBACK = ("callback",)
cdef tuple _DELAY = ("delay", "callback")
cdef tuple _WHEN = ("when", "callback")


cdef inline bint _in_order(Py_ssize_t nargs, PyObject *kwnames, Py_ssize_t least) noexcept:
    """Whether the arguments have the usual form, as tasks and futures pass them: only the context by name, if any."""
    cdef PyObject *name
    if nargs < least:
        return False
    if kwnames is NULL:
        return True
    if PyTuple_GET_SIZE(kwnames) != 1:
        return False
    name = PyTuple_GET_ITEM(kwnames, 0)
    return name == <PyObject *> _CONTEXT or PyUnicode_Compare(name, <PyObject *> _CONTEXT) == 0


cdef inline PyObject *_context(PyObject **args, Py_ssize_t nargs, PyObject *kwnames) noexcept:
    """The context argument, borrowed; NULL if it was not given."""
    return NULL if kwnames is NULL else args[nargs]


cdef object _by_name(Call call, PyObject *self, PyObject **args, Py_ssize_t nargs, PyObject *kwnames, str method,
                     tuple names):
    """Bring the arguments into the usual form and call again, or raise the error that asyncio's method would raise."""
    given = {} if kwnames is NULL else {name: <object> args[nargs + i] for i, name in enumerate(<tuple> kwnames)}
    cdef list ordered = [<object> args[i] for i in range(nargs)]
    cvars = given.pop(_CONTEXT, None)
    for name in names[:nargs]:
        if name in given:
            raise TypeError(f"BaseEventLoop.{method}() got multiple values for argument '{name}'")
    for name in given:
        if name not in names:
            raise TypeError(f"BaseEventLoop.{method}() got an unexpected keyword argument '{name}'")
    missing = [repr(name) for name in names[nargs:] if name not in given]
    if missing:
        raise TypeError(f"BaseEventLoop.{method}() missing {len(missing)} required positional "
                        f"argument{'s' if len(missing) > 1 else ''}: {' and '.join(missing)}")
    ordered += [given[name] for name in names[nargs:]]
    ordered.append(cvars)
    return call(self, PySequence_Fast_ITEMS(ordered), len(ordered) - 1, <PyObject *> _ONLY_CONTEXT)


cdef int _watch_call(Loop loop, PyObject *callback, str name, bint same_thread) except -1:
    """In debug mode, check a callback before it is accepted."""
    if same_thread:
        loop._check_thread()
    loop._check_callback(<object> callback, name)
    return 0


cdef int _watch_handle(Loop loop, PyObject *handle) except -1:
    """In debug mode, store the stack where the handle was made."""
    return (<Handle> handle).set_debug_info(loop, format_helpers.extract_stack(sys._getframe(0)), None)


cdef object _call_soon(PyObject *self, PyObject **args, Py_ssize_t nargs, PyObject *kwnames):
    cdef Loop loop = <Loop> self
    cdef PyObject *handle
    if not _in_order(nargs, kwnames, 1):
        return _by_name(_call_soon, self, args, nargs, kwnames, "call_soon", _CALLBACK)
    if ur_load_flag(&loop.closed):
        loop.check()
    if loop._debug:
        _watch_call(loop, args[0], "call_soon", True)
    handle = new_handle(args[0], args + 1, nargs - 1, _context(args, nargs, kwnames))
    if loop._debug:
        _watch_handle(loop, handle)
    if ur_load_flag(&loop.inbox.filled):
        # Another thread has submitted work before this call, so that must run first.
        loop.inbox.take(loop.ready)
    Py_XINCREF(handle)
    ready_push_owned(loop.ready, handle)
    return steal(handle)


cdef object _call_soon_threadsafe(PyObject *self, PyObject **args, Py_ssize_t nargs, PyObject *kwnames):
    cdef Loop loop = <Loop> self
    cdef PyObject *handle
    if not _in_order(nargs, kwnames, 1):
        return _by_name(_call_soon_threadsafe, self, args, nargs, kwnames, "call_soon_threadsafe", _CALLBACK)
    if ur_load_flag(&loop.closed):
        loop.check()
    if loop._debug:
        _watch_call(loop, args[0], "call_soon_threadsafe", False)
    handle = new_handle(args[0], args + 1, nargs - 1, _context(args, nargs, kwnames))
    (<Handle> handle).threadsafe = WAITS_FOR_SHARED
    result = steal(handle)
    if loop._debug:
        _watch_handle(loop, handle)
    # On the loop's own thread, also in a signal handler, queue it in order with the calls of call_soon.
    if runs_here(loop):
        Py_XINCREF(handle)
        ready_push_owned(loop.ready, handle)
    else:
        loop.inbox.push(<Runnable> handle)
    return result


cdef object _schedule(Loop loop, double when, PyObject **args, Py_ssize_t nargs, PyObject *cvars, str name):
    cdef PyObject *handle
    if ur_load_flag(&loop.closed):
        loop.check()
    if loop._debug:
        _watch_call(loop, args[1], name, True)
    handle = new_timer_handle(when, args[1], args + 2, nargs - 2, cvars)
    result = steal(handle)
    if loop._debug:
        _watch_handle(loop, handle)
    loop.timers.add(deadline_of(when), <TimerHandle> handle)
    return result


cdef object _call_later(PyObject *self, PyObject **args, Py_ssize_t nargs, PyObject *kwnames):
    cdef double when
    cdef object delay
    if not _in_order(nargs, kwnames, 2):
        return _by_name(_call_later, self, args, nargs, kwnames, "call_later", _DELAY)
    delay = <object> args[0]
    if type(delay) is float:
        when = <double> ur_now_ns() / 1e9 + <double> delay
    elif type(delay) is int:
        when = <double> ur_now_ns() / 1e9 + PyLong_AsDouble(delay)  # makes no float object
    elif delay is None:
        raise TypeError("delay must not be None")
    else:
        when = (<Loop> self).time() + delay
    return _schedule(<Loop> self, when, args, nargs, _context(args, nargs, kwnames), "call_later")


cdef object _call_at(PyObject *self, PyObject **args, Py_ssize_t nargs, PyObject *kwnames):
    cdef object when, handle
    if not _in_order(nargs, kwnames, 2):
        return _by_name(_call_at, self, args, nargs, kwnames, "call_at", _WHEN)
    when = <object> args[0]
    if when is None:
        raise TypeError("when cannot be None")
    (<Loop> self).check()  # first: a closed loop takes precedence over a `when` that is not a number
    handle = _schedule(<Loop> self, when, args, nargs, _context(args, nargs, kwnames), "call_at")
    if type(when) is int:
        (<TimerHandle> handle).when_is_int = True
    return handle


# inspect.signature reads the first line of these docstrings: the signatures are asyncio's.
ur_add_fast_method(Loop, "call_soon", <void *> _call_soon,
                   "call_soon($self, callback, *args, context=None)\n--\n\nRun the callback in the loop's next turn.")
ur_add_fast_method(Loop, "call_soon_threadsafe", <void *> _call_soon_threadsafe,
                   "call_soon_threadsafe($self, callback, *args, context=None)\n--\n\n"
                   "Run the callback in the loop's next turn; may be called from any thread.")
ur_add_fast_method(Loop, "call_later", <void *> _call_later,
                   "call_later($self, delay, callback, *args, context=None)\n--\n\n"
                   "Run the callback after `delay` seconds, never before.")
ur_add_fast_method(Loop, "call_at", <void *> _call_at,
                   "call_at($self, when, callback, *args, context=None)\n--\n\n"
                   "Run the callback when the loop's time() reaches `when`, never before.")
