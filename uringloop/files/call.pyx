# Call: what the methods of files return, a coroutine in one small object. Nothing happens before it is awaited.
# Its first step asks its file to do the work at once (from a buffer, or by a system call that cannot block);
# only what has to wait becomes a real coroutine. So a read from the cache costs no frame, no future and no turn.
#
# Callee: what such methods belong to. Owns the share of a turn that a file may use without letting others run:
# work that always finishes at once would otherwise never end its task's step.
import warnings
from asyncio.events import _get_running_loop

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from uringloop._core.awaited.file_op cimport OpOwner
from uringloop._core.loop.loop cimport Loop, runs_here
from uringloop._core.objects.guard cimport ur_abstract, ur_only_core_makes

cdef extern from "Python.h":
    int PyIter_Send(object iterator, object value, PyObject **result) except -1
    bint PyExceptionInstance_Check(object error)

cdef extern from *:
    """
    UR_DEFINE_FREE_LIST(ur_calls)

    typedef int (*ur_send)(PyObject *, PyObject *, PyObject **);
    static ur_send ur_call_send;

    /* Sets StopIteration(value), what an iterator's return is; a tuple or an exception would be taken apart. */
    static void ur_set_return(PyObject *value) {
        PyObject *stop;
        if (!PyTuple_Check(value) && !PyExceptionInstance_Check(value)) {
            PyErr_SetObject(PyExc_StopIteration, value);
            return;
        }
        stop = PyObject_CallOneArg(PyExc_StopIteration, value);
        if (stop != NULL) {
            PyErr_SetObject(PyExc_StopIteration, stop);
            Py_DECREF(stop);
        }
    }

    static PyObject *ur_call_next(PyObject *self) {
        PyObject *value = NULL;
        int kind = ur_call_send(self, Py_None, &value);
        if (kind > 0) return value;
        if (kind == 0) {
            if (value != Py_None) ur_set_return(value);
            Py_DECREF(value);
        }
        return NULL;
    }

    static PySendResult ur_call_am_send(PyObject *self, PyObject *value, PyObject **result) {
        return (PySendResult)ur_call_send(self, value, result);
    }

    /* The slots that await uses, without the traceback entry that compiled code adds to every exception. */
    static void ur_calls_slots(PyObject *type, ur_send send) {
        ur_call_send = send;
        ((PyTypeObject *)type)->tp_iternext = ur_call_next;
        ((PyTypeObject *)type)->tp_as_async->am_send = ur_call_am_send;
        ur_calls_install(type);
    }
    """
    void ur_calls_slots(object type, int (*send)(object, object, PyObject **) except -1) noexcept
    void ur_set_return(object value)

PENDING = object()

# How much finishes at once before others run, in steps of at most 16 KiB: by one file, and by all of a loop.
cdef enum:
    SHARE = 64
    LOOP_SHARE = 512
    STEP = 16384


cdef class Callee(OpOwner):
    cdef object begin(self, Call call):
        """Do it, and return the result; or set `call.inner` to a coroutine that will, and return PENDING."""
        raise NotImplementedError

    cdef int bind(self) except -1:
        """Belong to the running loop from now on."""
        loop = _get_running_loop()
        if not isinstance(loop, Loop):
            what = "no event loop is running" if loop is None else f"the running event loop is a {type(loop).__name__}"
            raise RuntimeError(f"uringloop's files work on uringloop's event loop only: {what}")
        self.loop = loop
        return 0

    cdef bint spent(self) noexcept:
        """Whether others are to run first. A new turn brings a new share."""
        cdef Loop loop = self.loop
        if loop.file_turn != loop.turns:
            loop.file_turn = loop.turns
            loop.file_share = LOOP_SHARE
        if self.turn != loop.turns:
            self.turn = loop.turns
            self.share = SHARE
            return False
        return self.share <= 0 or loop.file_share <= 0

    cdef void spend(self, Py_ssize_t size) noexcept:
        cdef int steps = 1 + <int> (size // STEP)
        self.share -= steps
        self.loop.file_share -= steps


cdef class Call:
    """A coroutine, for asyncio and `collections.abc`."""

    def __dealloc__(self):
        if self.state == CALL_NEW and self.callee is not None:
            _never_awaited()

    def __await__(self):
        if self.state != CALL_NEW:
            raise RuntimeError("cannot reuse already awaited coroutine")
        return self

    def __next__(self):
        return self.send(None)

    def send(self, value, /):
        cdef PyObject *result = NULL
        if call_send(self, value, &result):
            return <object> result
        ur_set_return(<object> result)

    def throw(self, kind, value=None, traceback=None, /):
        if self.state == CALL_OVER:
            raise RuntimeError("cannot reuse already awaited coroutine")
        if self.state == CALL_RUNNING:
            try:
                return self.inner.throw(kind) if value is None else self.inner.throw(kind, value, traceback)
            except BaseException:
                self.over()
                raise
        self.over()
        if value is None:
            value = kind if PyExceptionInstance_Check(kind) else kind()
        elif not PyExceptionInstance_Check(value):
            value = kind(value)
        raise value if traceback is None else value.with_traceback(traceback)

    def close(self):
        inner = self.inner
        self.over()
        if inner is not None:
            inner.close()

    cdef int over(self) except -1:
        self.state = CALL_OVER
        self.callee = None
        self.first = self.second = self.inner = None
        return 0

    @property
    def cr_running(self):
        return False

    @property
    def cr_await(self):
        return self.inner

    @property
    def __name__(self):
        return "Call"

    @property
    def __qualname__(self):
        return "Call"


cdef int call_send(object self, object value, PyObject **result) except -1:
    """One step: 1 and what it yields, or 0 and what it returns; the caller owns the reference."""
    cdef Call call = <Call> self
    cdef Callee callee
    cdef object outcome
    cdef int kind
    if call.state == CALL_RUNNING:
        try:
            kind = PyIter_Send(call.inner, value, result)
        except BaseException:
            call.over()
            raise
        if kind == 0:
            call.over()
        return kind
    if call.state == CALL_OVER:
        raise RuntimeError("cannot reuse already awaited coroutine")
    callee = call.callee
    try:
        if callee.loop is None or not runs_here(callee.loop):
            callee.bind()
        if call.state == CALL_NEW and callee.spent():
            call.state = CALL_PAUSED
            Py_INCREF(None)
            result[0] = <PyObject *> None
            return 1
        call.state = CALL_RUNNING
        outcome = callee.begin(call)
    except BaseException:
        call.over()
        raise
    if outcome is PENDING:
        return call_send(call, None, result)
    call.state = CALL_OVER
    Py_INCREF(outcome)
    result[0] = <PyObject *> outcome
    return 0


cdef Call make_call(Callee callee, int kind, object first, object second):
    cdef Call call = Call.__new__(Call)
    call.callee = callee
    call.kind = kind
    call.first = first
    call.second = second
    return call


cdef void _never_awaited() noexcept:
    try:
        warnings.warn("coroutine of a file's method was never awaited", RuntimeWarning, stacklevel=2)
    except BaseException:
        pass  # warnings are errors, and there is nobody to tell


ur_calls_slots(<object> Call, call_send)
ur_only_core_makes(Call)
ur_abstract(Callee)
