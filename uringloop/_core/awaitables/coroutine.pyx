# Coroutine: a coroutine in one object, for calls that a program awaits once per message. It has no frame and no generator,
# and makes a future only if it has to wait. A task drives it like any other coroutine; a subclass defines two steps.
# Also the protocol that makes coroutines of compiled classes of any layout; FutureOp (an Op) and a file's Call use it too.
# make_coroutines gives a class the slots and methods by which tasks, `await` and programs resume and end its objects.
import inspect
import warnings
from asyncio import coroutines

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint8_t

from uringloop._core.lifetime.guard cimport ur_abstract

cdef extern from "Python.h":
    int PYGEN_RETURN, PYGEN_NEXT
    bint PyExceptionInstance_Check(object error)

cdef extern from *:
    """
    #define UR_PROTOCOL(self) ((ur_coroutine *)Py_TYPE(self)->tp_as_async)
    #define UR_PHASE(self) ((unsigned char *)(self))[UR_PROTOCOL(self)->phase]
    #define UR_PHASE_NEW 0

    static PyObject *ur_await(PyObject *self) {
        if (UR_PHASE(self) != UR_PHASE_NEW) {
            PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited coroutine");
            return NULL;
        }
        Py_INCREF(self);
        return self;
    }

    /* For tasks, and for `await` on some Pythons: returns the result as a value, without an exception and its traceback. */
    static PySendResult ur_send(PyObject *self, PyObject *value, PyObject **result) {
        *result = NULL;
        if (value != Py_None && UR_PHASE(self) == UR_PHASE_NEW) {
            PyErr_SetString(PyExc_TypeError, "can't send non-None value to a just-started coroutine");
            return PYGEN_ERROR;
        }
        return (PySendResult)UR_PROTOCOL(self)->step(self, value, result);
    }

    static PyObject *ur_next(PyObject *self) {
        PyObject *value = NULL;
        return UR_PROTOCOL(self)->step(self, Py_None, &value) == PYGEN_RETURN ? ur_stop(value) : value;
    }

    /* Set by hand, because Cython has no name for am_send, and adds a traceback entry at the end of every __next__. */
    static void ur_set_slots(PyObject *type, ur_coroutine *protocol) {
        protocol->slots.am_await = ur_await;
        protocol->slots.am_send = ur_send;
        ((PyTypeObject *)type)->tp_as_async = &protocol->slots;
        ((PyTypeObject *)type)->tp_iternext = ur_next;
    }

    static int ur_is_coroutine(PyObject *self) {
        return Py_TYPE(self)->tp_as_async != NULL && Py_TYPE(self)->tp_as_async->am_send == ur_send;
    }

    /* Set an attribute of a class, unless the class defines it itself. */
    static int ur_set_default(PyObject *type, PyObject *name, PyObject *value) {
        if (PyDict_SetDefault(((PyTypeObject *)type)->tp_dict, name, value) == NULL) return -1;
        PyType_Modified((PyTypeObject *)type);
        return 0;
    }

    static inline PyObject *ur_owned(PyObject *result) { return result; }
    """
    object ur_await(object self)
    int ur_send(object self, object value, PyObject **result) except -1
    void ur_set_slots(object type, ur_coroutine *protocol)
    bint ur_is_coroutine(object self)
    int ur_set_default(object type, object name, object value) except -1
    object owned "ur_owned"(PyObject *result)
    uint8_t UR_PHASE(object self)
    ur_coroutine *UR_PROTOCOL(object self)

WAIT = object()


cdef int make_coroutines(
        tuple kinds, ur_coroutine *protocol, void *phase, step_function step, stop_function stop) except -1:
    """Make the first class's objects coroutines. The others are the classes of its module that derive from it; derived
    classes of other modules inherit the slots. `phase` is the address that the phase would have if an object lay at
    the first class's own address: the difference of the two is the offset.

    The slots find the protocol through an object's class. So no class may define one of these slots itself, and Python may
    not derive classes from these."""
    protocol.phase = <char *> phase - <char *> <PyObject *> kinds[0]
    protocol.step = step
    protocol.stop = stop
    for name, value in _ATTRIBUTES.items():
        ur_set_default(kinds[0], name, value)
    for kind in kinds:
        ur_set_slots(kind, protocol)
    return 0


cdef int _check(object self) except -1:
    if not ur_is_coroutine(self):
        raise TypeError(f"a coroutine of uringloop is required, not {type(self).__name__}")
    return 0


class _Methods:
    def __await__(self):
        _check(self)
        return ur_await(self)

    def __next__(self):
        return self.send(None)

    def send(self, value, /):
        cdef PyObject *result = NULL
        _check(self)
        if ur_send(self, value, &result) == PYGEN_NEXT:
            return owned(result)
        outcome = owned(result)
        if outcome is None:
            raise StopIteration
        Py_INCREF(outcome)
        owned(ur_stop(<PyObject *> outcome))

    def throw(self, kind, value=None, traceback=None, /):
        """End it with an exception; a task calls this when it is cancelled."""
        _check(self)
        raise end_with(self, kind, value, traceback)

    def close(self):
        _check(self)
        UR_PROTOCOL(self).stop(self)

    @property
    def cr_running(self):
        return False


cdef str name_of(object coroutine):
    """The name of the function that the program called to get it, if it is not the class's name."""
    return getattr(type(coroutine), "_called", None) or type(coroutine).__qualname__


cdef dict _ATTRIBUTES = {
    name: _Methods.__dict__[name] for name in ("__await__", "__next__", "send", "throw", "close", "cr_running")
}
_ATTRIBUTES["__qualname__"] = property(lambda self: name_of(self))
_ATTRIBUTES["__name__"] = property(lambda self: name_of(self).rpartition(".")[2])


cdef int stepped(object outcome, object future, PyObject **result) noexcept:
    """Convert a step's outcome to a PySendResult, which the step function returns."""
    if outcome is WAIT:
        Py_INCREF(future)
        result[0] = <PyObject *> future
        return PYGEN_NEXT
    Py_INCREF(outcome)
    result[0] = <PyObject *> outcome
    return PYGEN_RETURN


cdef object end_with(object coroutine, object kind, object value, object traceback):
    """End it as `throw` does; returns the exception to raise."""
    if UR_PHASE(coroutine) == PHASE_OVER:
        reused()
    UR_PROTOCOL(coroutine).stop(coroutine)
    return as_exception(kind, value, traceback)


cdef object as_exception(object kind, object value, object traceback):
    """The exception that `throw(kind, value, traceback)` throws."""
    if value is None:
        value = kind if PyExceptionInstance_Check(kind) else kind()
    elif not PyExceptionInstance_Check(value):
        value = kind(value)
    return value if traceback is None else value.with_traceback(traceback)


cdef int reused() except -1:
    """Raise: it is over, and other code resumes it."""
    raise RuntimeError("cannot reuse already awaited coroutine")


cdef int resumed_early() except -1:
    """Raise: other code resumed the task although its future is not done."""
    raise RuntimeError("await wasn't used with future")


cdef void never_awaited(str name) noexcept:
    warn_never_awaited(f"coroutine '{name}'")


cdef void warn_never_awaited(str what) noexcept:
    try:
        # Compiled code has no frame: level 1 is the program's line that dropped the coroutine.
        warnings.warn(f"{what} was never awaited", RuntimeWarning, stacklevel=1)
    except BaseException:
        pass  # warnings are errors, but a destructor has no caller that could handle one


cdef int returns_coroutine(object function) except -1:
    """Mark a function for inspect and asyncio: it returns a coroutine, although it is not an `async def`."""
    function._is_coroutine = getattr(coroutines, "_is_coroutine", None)
    if hasattr(inspect, "markcoroutinefunction"):
        inspect.markcoroutinefunction(function)
    return 0


cdef class Coroutine:
    """A coroutine, for asyncio and `collections.abc`."""

    _called = ""  # the name of the function that the program called to get one, if it is not the class's name

    def __dealloc__(self):
        if self.phase == PHASE_NEW:
            never_awaited(name_of(self))

    cdef object first(self):
        """The first step, when it is awaited: returns the result, or WAIT with `future` set."""
        raise NotImplementedError

    cdef object again(self):
        """The step after the future: returns the result, or WAIT. If the future is not done, it must call
        `resumed_early`."""
        raise NotImplementedError

    cdef int left(self) except -1:
        """It was cancelled or closed while it was suspended. `future` is still set."""
        return 0

    cdef object advance(self):
        cdef object outcome
        if self.phase == PHASE_OVER:
            reused()
        try:
            if self.phase == PHASE_NEW:
                self.phase = PHASE_WAITING
                outcome = self.first()
            else:
                outcome = self.again()
        except BaseException:
            self.stop()
            raise
        if outcome is WAIT:
            self.future._asyncio_future_blocking = True
            return outcome
        self.phase = PHASE_OVER
        self.future = None
        return outcome

    cdef int stop(self) except -1:
        cdef uint8_t phase = self.phase
        self.phase = PHASE_OVER
        if phase == PHASE_WAITING and self.future is not None:
            self.left()
        self.future = None
        return 0


cdef int _step(Coroutine self, object value, PyObject **result) except -1:
    outcome = self.advance()
    return stepped(outcome, self.future, result)


cdef int _stop(Coroutine self) except -1:
    return self.stop()


cdef ur_coroutine _protocol
make_coroutines(
    (Coroutine,), &_protocol, &(<Coroutine> <PyObject *> Coroutine).phase, <step_function> _step, <stop_function> _stop)
ur_abstract(Coroutine)
