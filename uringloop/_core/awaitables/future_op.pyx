# FutureOp: an operation that a task awaits like a coroutine. One object is the kernel's operation and the task's
# coroutine, and, only if it has to wait, owns the asyncio future that wakes the task. So an operation that can finish
# at once costs neither a frame nor a future nor a suspension.
# ReadyOp: waits until a descriptor is readable or writable, and then makes its system call itself. It takes data from the
# kernel only in the step that also returns the data, so a cancel at any moment loses nothing.
import os
from asyncio import exceptions, futures

from cpython.object cimport PyObject
from libc.stdint cimport uint32_t

from uringloop._core.awaitables.coroutine cimport (
    PHASE_NEW, PHASE_OVER, PHASE_WAITING, WAIT, make_coroutines, name_of, never_awaited, resumed_early, reused,
    step_function, stepped, stop_function, ur_coroutine,
)
from uringloop._core.engine.op cimport NEED_READ, NEED_WRITE, OP_IDLE, OP_IN_KERNEL, OP_QUEUED, Op
from uringloop._core.kernel.abi cimport IORING_OP_POLL_ADD, io_uring_sqe
from uringloop._core.kernel.libc cimport EAGAIN, ECANCELED, POLLIN, POLLOUT, c_poll, errno, pollfd
from uringloop._core.loop.loop cimport Loop
from uringloop._core.lifetime.guard cimport ur_abstract, ur_only_core_makes

cdef extern from "Python.h":
    object PyObject_Call(object callable, object args, object kwargs)
    PyObject *PyObject_VectorcallMethod(PyObject *name, PyObject **args, size_t nargsf, PyObject *kwnames) noexcept
    size_t PY_VECTORCALL_ARGUMENTS_OFFSET

cdef object _Future = futures.Future
cdef tuple _NO_ARGUMENTS = ()
cdef str _SET_RESULT = "set_result"


cdef class FutureOp(Op):
    """A coroutine, for asyncio and `collections.abc`. The function or method named like the operation makes it."""

    def __dealloc__(self):
        if self.phase == PHASE_NEW and self.loop is not None:
            never_awaited(name_of(self))

    cdef object requester(self):
        return self.future

    # Steps that subclasses define

    cdef object first(self):
        """The first step, when it is awaited: returns the result, or WAIT to be submitted."""
        return WAIT

    cdef object again(self):
        """The step after a completion, whose result is in `res`: returns the result, or WAIT to be submitted again."""
        return self.res

    cdef int left(self) except -1:
        """The operation has completed, but its coroutine was cancelled or closed before it could return the result."""
        return 0

    # Driven by a task

    cdef object advance(self):
        cdef object outcome
        if self.phase == PHASE_NEW:
            self.phase = PHASE_WAITING
            try:
                outcome = self.first()
            except BaseException:
                self.phase = PHASE_OVER
                raise
        elif self.phase == PHASE_WAITING:
            if not self.done:
                return self._resumed_early()
            self.future = None
            try:
                outcome = self.again()
            except BaseException:
                self.phase = PHASE_OVER
                raise
        else:
            reused()
        if outcome is not WAIT:
            self.phase = PHASE_OVER
        return outcome

    def _resumed_early(self):
        """The task runs although the operation has not completed: other code has settled our future."""
        future = self.future
        self.stop()
        future.result()
        resumed_early()

    cdef object suspend(self):
        self.loop.check()  # the loop may have been closed since the last step
        self.done = False
        future = PyObject_Call(_Future, _NO_ARGUMENTS, self.loop.future_arguments)
        self.loop.engine.submit(self)  # not before there is a future to settle
        self.future = future
        future._asyncio_future_blocking = True
        return future

    cdef int stop(self) except -1:
        """End it in any phase. If the operation is in the kernel, this only requests a cancel, and the object stays alive
        until the last completion."""
        cdef uint8_t phase = self.phase
        self.phase = PHASE_OVER
        self.future = None
        if phase != PHASE_WAITING:
            return 0
        if self.state == OP_IN_KERNEL or self.state == OP_QUEUED:
            self.loop.engine.cancel(self)
            if not self.loop.runner:
                self.loop.engine.flush_now()  # the loop does not run, so it would not; and the operation keeps its file open
        elif self.done:
            self.left()
        return 0

    # Driven by the engine

    cdef void record_completion(self, int res, uint32_t flags) noexcept:
        self.res = res
        self.done = True

    cdef int run(self, object loop) except -1:
        cdef PyObject *stack[3]
        cdef PyObject *result
        if self.phase != PHASE_WAITING:
            return self.left()
        if self.future is None:
            return 0
        stack[1] = <PyObject *> self.future
        stack[2] = <PyObject *> None
        result = PyObject_VectorcallMethod(<PyObject *> _SET_RESULT, &stack[1], 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL)
        if result is NULL:
            forgive_settled(self.future)
        else:
            drop(result)
        return 0


cdef extern from *:
    """
    static inline int ur_raised(void) { return -1; }
    static inline void ur_drop(PyObject *result) { Py_DECREF(result); }
    """
    int raised "ur_raised"() except -1
    void drop "ur_drop"(PyObject *result) noexcept


cdef int forgive_settled(object future) except -1:
    """set_result failed. That is no error if the future was cancelled: the task sees the cancellation when it runs."""
    try:
        raised()
    except exceptions.InvalidStateError:
        pass
    return 0


cdef int _step(FutureOp self, object value, PyObject **result) except -1:
    outcome = self.advance()
    if outcome is WAIT:
        self.suspend()
    return stepped(outcome, self.future, result)


cdef int _stop(FutureOp self) except -1:
    return self.stop()


cdef class ReadyOp(FutureOp):
    """Waits for readiness. A subclass then makes its system call, and waits again if that would block."""

    cdef object again(self):
        if self.res == -ECANCELED:
            return WAIT  # its ring is gone, but its descriptor is still open
        if self.res < 0:
            raise OSError(-self.res, os.strerror(-self.res))
        return None

    cdef int file_closes(self, object refs) except -1:
        """The program closes the socket to which this IoRefs belongs."""
        return 0

    cdef void fill(self, io_uring_sqe *sqe) noexcept:
        sqe.opcode = IORING_OP_POLL_ADD
        sqe.fd = self.fd
        sqe.poll32_events = self.events

    cdef int attempt(self, uint32_t *flags) noexcept:
        cdef pollfd watched
        cdef int count
        watched.fd = self.fd
        watched.events = <short> self.events
        watched.revents = 0
        count = c_poll(&watched, 1, 0)
        if count < 0:
            return -errno
        return watched.revents if count else -EAGAIN

    cdef str describe(self):
        return f"{type(self).__name__} {'writable' if self.events == <uint32_t> POLLOUT else 'readable'}"


cdef class Readiness(ReadyOp):
    """Waits for readiness, and does nothing else."""


cdef ReadyOp _ready(Loop loop, int fd, uint32_t events):
    cdef Readiness op = Readiness.__new__(Readiness)
    op.loop = loop
    op.fd = fd
    op.events = events
    op.need = NEED_WRITE if events == <uint32_t> POLLOUT else NEED_READ
    op.repeatable = True
    return op


def until_readable(Loop loop, int fd):
    """A coroutine that ends when the descriptor is readable."""
    return _ready(loop, fd, POLLIN)


def until_writable(Loop loop, int fd):
    """A coroutine that ends when the descriptor is writable."""
    return _ready(loop, fd, POLLOUT)


cdef ur_coroutine _protocol
make_coroutines(
    (FutureOp, ReadyOp, Readiness), &_protocol, &(<FutureOp> <PyObject *> FutureOp).phase, <step_function> _step,
    <stop_function> _stop)
ur_abstract(FutureOp)
ur_abstract(ReadyOp)
ur_only_core_makes(Readiness)
