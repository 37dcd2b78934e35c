# ReadyAwaitable: an awaitable that already has its result. Owns that result. Never suspends.
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from uringloop._core.awaitables.coroutine cimport as_exception, ur_set_iternext, ur_stop
from uringloop._core.lifetime.guard cimport ur_only_core_makes


cdef class ReadyAwaitable:
    """An awaitable that is its own iterator and ends at once."""

    def __await__(self):
        return self

    def send(self, value):
        raise StopIteration(self.value)

    def throw(self, kind, value=None, traceback=None):
        raise as_exception(kind, value, traceback)

    def close(self):
        pass


cdef PyObject *_next(PyObject *self) noexcept:
    cdef PyObject *value = <PyObject *> (<ReadyAwaitable> self).value
    Py_INCREF(<object> value)
    return ur_stop(value)


cdef ReadyAwaitable READY_NONE = ReadyAwaitable()


cdef object ready_awaitable(object value):
    cdef ReadyAwaitable made
    if value is None:
        return READY_NONE
    made = ReadyAwaitable.__new__(ReadyAwaitable)
    made.value = value
    return made


ur_set_iternext(ReadyAwaitable, _next)
ur_only_core_makes(ReadyAwaitable)
