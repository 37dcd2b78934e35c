# Coroutine: a coroutine in one object, for what is awaited once a message. No frame, no generator, and a future
# only if it has to wait. A task drives it like any other; what it does is two functions of its subclass.
# Also what such objects share with FutureOp, which has to be an Op instead.
import inspect
import warnings
from asyncio import coroutines

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from uringloop._core.objects.guard cimport ur_abstract

cdef extern from "Python.h":
    int PYGEN_RETURN, PYGEN_NEXT
    bint PyExceptionInstance_Check(object error)

WAIT = object()


cdef int sent(object outcome, object future, PyObject **result) noexcept:
    """What am_send answers after a step."""
    if outcome is WAIT:
        Py_INCREF(future)
        result[0] = <PyObject *> future
        return PYGEN_NEXT
    Py_INCREF(outcome)
    result[0] = <PyObject *> outcome
    return PYGEN_RETURN


cdef object as_exception(object kind, object value, object traceback):
    """The exception that `throw(kind, value, traceback)` throws."""
    if value is None:
        value = kind if PyExceptionInstance_Check(kind) else kind()
    elif not PyExceptionInstance_Check(value):
        value = kind(value)
    return value if traceback is None else value.with_traceback(traceback)


cdef void never_awaited(str name) noexcept:
    try:
        warnings.warn(f"coroutine '{name}' was never awaited", RuntimeWarning, stacklevel=2)
    except BaseException:
        pass  # warnings are errors, and there is nobody to tell


cdef int returns_coroutine(object function) except -1:
    """What it returns is a coroutine, though it was not made by `async def`: say so to inspect and asyncio."""
    function._is_coroutine = getattr(coroutines, "_is_coroutine", None)
    if hasattr(inspect, "markcoroutinefunction"):
        inspect.markcoroutinefunction(function)
    return 0


cdef int resumed_early() except -1:
    """The task runs although what it waits for has not happened: somebody else resumed it."""
    raise RuntimeError("await wasn't used with future")


cdef class Coroutine:
    """A coroutine, for asyncio and `collections.abc`."""

    _called = ""  # what the program called to get one, where it knows that by another name

    def __dealloc__(self):
        if self.phase == PHASE_NEW:
            never_awaited(type(self)._called or type(self).__name__)

    cdef object first(self):
        """The first step, when it is awaited: the result, or WAIT with `future` set."""
        raise NotImplementedError

    cdef object again(self):
        """A step after the future was done (if it is not, say so with `resumed_early`): the same choice."""
        raise NotImplementedError

    cdef int left(self) except -1:
        """Nobody waits any more (cancelled, closed), though it was suspended: `future` is still there."""
        return 0

    def __await__(self):
        if self.phase != PHASE_NEW:
            raise RuntimeError("cannot reuse already awaited coroutine")
        return self

    def __next__(self):
        # NULL without an exception is how an iterator says "returned None": Cython makes that of the bare raise.
        cdef object outcome = self.advance()
        if outcome is WAIT:
            return self.future
        if outcome is None:
            raise StopIteration
        return_value(outcome)

    def send(self, value):
        if value is not None and self.phase == PHASE_NEW:
            raise TypeError("can't send non-None value to a just-started coroutine")
        outcome = self.advance()
        if outcome is WAIT:
            return self.future
        return_value(outcome)

    def throw(self, kind, value=None, traceback=None):
        """Cancelling arrives here."""
        if self.phase == PHASE_OVER:
            raise RuntimeError("cannot reuse already awaited coroutine")
        self.stop()
        raise as_exception(kind, value, traceback)

    def close(self):
        self.stop()

    cdef object advance(self):
        cdef object outcome
        if self.phase == PHASE_OVER:
            raise RuntimeError("cannot reuse already awaited coroutine")
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

    @property
    def cr_running(self):
        return False

    @property
    def __name__(self):
        return self.__qualname__.rpartition(".")[2]

    @property
    def __qualname__(self):
        return self._called or type(self).__qualname__


cdef int _send(Coroutine self, object value, PyObject **result) except -1:
    if value is not None and self.phase == PHASE_NEW:
        raise TypeError("can't send non-None value to a just-started coroutine")
    outcome = self.advance()
    return sent(outcome, self.future, result)


ur_set_send(Coroutine, <void *> _send)
ur_abstract(Coroutine)
