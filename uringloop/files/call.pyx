# Call: what the methods of files return, a coroutine in one small object. Nothing happens before it is awaited.
# Its first step asks its file to do the work at once (from a buffer, or by a system call that cannot block). Only if
# the work has to wait, the file makes a real coroutine for it, which the Call then runs. So a read from the cache costs
# no frame, no future and no turn.
#
# Callee: the base class of objects that have such methods. Owns its share of a turn.
from asyncio.events import _get_running_loop

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from uringloop._core.awaitables.coroutine cimport (
    PHASE_NEW, PHASE_OVER, PHASE_PAUSED, PHASE_WAITING, end_with, make_coroutines, reused, step_function, stop_function,
    ur_coroutine, warn_never_awaited,
)
from uringloop._core.loop.loop cimport Loop, runs_here
from uringloop._core.lifetime.guard cimport ur_abstract, ur_only_core_makes
from uringloop.files.turn_share cimport TurnShare, make_turn_share

cdef extern from "Python.h":
    int PyIter_Send(object iterator, object value, PyObject **result) except -1
    int PYGEN_RETURN, PYGEN_NEXT

cdef extern from *:
    """
    UR_DEFINE_FREE_LIST(ur_calls)
    """
    void ur_calls_install(object type)

PENDING = object()


cdef class Callee:
    def __cinit__(self):
        self.share = make_turn_share()

    cdef object begin(self, Call call):
        """Do it, and return the result; or set `call.inner` to a coroutine that will, and return PENDING."""
        raise NotImplementedError

    cdef str described(self, int kind):
        """The method that makes calls of this kind, and the object, for warnings."""
        return f"coroutine of {self!r}"

    cdef int bind(self) except -1:
        """Belong to the running loop from now on."""
        loop = _get_running_loop()
        if not isinstance(loop, Loop):
            what = "no event loop is running" if loop is None else f"the running event loop is a {type(loop).__name__}"
            raise RuntimeError(f"uringloop's files work on uringloop's event loop only: {what}")
        self.share.loop = loop
        return 0


cdef void _warn(Callee callee, int kind) noexcept:
    try:
        what = callee.described(kind)
    except Exception:  # a subclass may have any repr
        what = "coroutine of a file's method"
    warn_never_awaited(what)


cdef class Call:
    """A coroutine, for asyncio and `collections.abc`."""

    def __dealloc__(self):
        if self.phase == PHASE_NEW and self.callee is not None:
            _warn(self.callee, self.kind)

    def throw(self, kind, value=None, traceback=None, /):
        if not isinstance(<object> self, Call):  # Cython does not check what `Call.throw(other, ...)` is given
            raise TypeError(f"a coroutine of uringloop is required, not {type(<object> self).__name__}")
        if self.phase != PHASE_WAITING:
            raise end_with(self, kind, value, traceback)
        try:
            return self.inner.throw(kind) if value is None else self.inner.throw(kind, value, traceback)
        except BaseException:
            self.over()
            raise

    cdef int over(self) except -1:
        self.phase = PHASE_OVER
        self.callee = None
        self.first = self.second = self.inner = None
        return 0

    @property
    def cr_await(self):
        return self.inner


cdef int _step(Call call, object value, PyObject **result) except -1:
    cdef Callee callee
    cdef TurnShare share
    cdef object outcome
    cdef int kind
    if call.phase == PHASE_WAITING:
        try:
            kind = PyIter_Send(call.inner, value, result)
        except BaseException:
            call.over()
            raise
        if kind == PYGEN_RETURN:
            call.over()
        return kind
    if call.phase == PHASE_OVER:
        reused()
    callee = call.callee
    share = callee.share
    try:
        if share.loop is None or not runs_here(share.loop):
            callee.bind()
        if call.phase == PHASE_NEW and share.spent():
            call.phase = PHASE_PAUSED
            Py_INCREF(None)
            result[0] = <PyObject *> None
            return PYGEN_NEXT
        call.phase = PHASE_WAITING
        outcome = callee.begin(call)
    except BaseException:
        call.over()
        raise
    if outcome is PENDING:
        return _step(call, None, result)
    call.phase = PHASE_OVER
    Py_INCREF(outcome)
    result[0] = <PyObject *> outcome
    return PYGEN_RETURN


cdef int _stop(Call call) except -1:
    inner = call.inner
    call.over()
    if inner is not None:
        inner.close()
    return 0


cdef Call make_call(Callee callee, int kind, object first, object second):
    cdef Call call = Call.__new__(Call)
    call.callee = callee
    call.kind = kind
    call.first = first
    call.second = second
    return call


cdef ur_coroutine _protocol
make_coroutines(
    (Call,), &_protocol, &(<Call> <PyObject *> Call).phase, <step_function> _step, <stop_function> _stop)
ur_calls_install(Call)
ur_only_core_makes(Call)
ur_abstract(Callee)
