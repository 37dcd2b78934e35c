# ChildOp: waits until a child process has ended, through the ring if the kernel can (WAITID), otherwise by a pidfd,
# which becomes readable then. Owns the pidfd. Never takes the exit status: the process stays a zombie until `exited` reaps
# it, so no status is lost if that cannot be called any more, or if other code has reaped the process first.
# Also the steps after the end that Ctrl-C must not interrupt: Python runs its signal handlers between two bytecode
# instructions, and compiled code has none.
import contextlib
import os

from libc.stdint cimport uint32_t

from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.op cimport NEED_READ, OP_IDLE, Op
from uringloop._core.engine.uring cimport UringEngine
from uringloop._core.kernel.abi cimport IORING_OP_POLL_ADD, IORING_OP_WAITID, io_uring_sqe
from uringloop._core.kernel.libc cimport EAGAIN, POLLIN, c_close, errno
from uringloop._core.kernel.probe cimport kernel_features
from uringloop._core.loop.loop cimport Loop
from uringloop._core.lifetime.counters cimport COUNT_FD, count_freed, count_made
from uringloop._core.lifetime.guard cimport URINGLOOP_DEBUG

cdef extern from "<sys/wait.h>" nogil:
    ctypedef struct siginfo_t:
        int si_pid
    int P_PID, WEXITED, WNOHANG, WNOWAIT
    int waitpid(int pid, int *status, int options)
    int waitid(int kind, unsigned id, siginfo_t *info, int options)


cdef object _NO_LOCK = contextlib.nullcontext()

# asyncio reports this when other code has taken the exit status.
cdef int STATUS_TAKEN = 255


cdef class ChildOp(Op):
    def __cinit__(self, Loop loop, int pid, exited):
        self.engine = loop.engine
        self.pid = pid
        self.exited = exited
        self.need = NEED_READ
        self.repeatable = True
        self.through_ring = isinstance(self.engine, UringEngine) and kernel_features().waitid
        if not self.through_ring:
            self.fd = os.pidfd_open(pid)
            if URINGLOOP_DEBUG:
                count_made(COUNT_FD)

    def __dealloc__(self):
        self._close()

    cdef void _close(self) noexcept:
        if self.fd >= 0:
            c_close(self.fd)
            self.fd = -1
            if URINGLOOP_DEBUG:
                count_freed(COUNT_FD)

    def start(self):
        if self.state == OP_IDLE and not self.queued:
            self.engine.submit(self)

    cdef void fill(self, io_uring_sqe *sqe) noexcept:
        if not self.through_ring:
            sqe.opcode = IORING_OP_POLL_ADD
            sqe.fd = self.fd
            sqe.poll32_events = POLLIN
            return
        sqe.opcode = IORING_OP_WAITID
        sqe.fd = self.pid
        sqe.len = P_PID
        sqe.file_index = WEXITED | WNOWAIT

    cdef int attempt(self, uint32_t *flags) noexcept:
        cdef siginfo_t info
        info.si_pid = 0
        if waitid(P_PID, self.pid, &info, WEXITED | WNOWAIT | WNOHANG) < 0:
            return -errno
        return 0 if info.si_pid else -EAGAIN

    cdef int run(self, object loop) except -1:
        # Whatever the result is: if the wait has failed, other code has reaped the process.
        if self.exited is None or self.engine.closed:
            return 0
        try:
            ended = self.exited()
        except (SystemExit, KeyboardInterrupt):
            self.start()  # calls `exited` again when the loop runs again
            raise
        except BaseException as error:
            loop.call_exception_handler({"message": f"Exception while reporting the end of process {self.pid}",
                                         "exception": error})
            ended = True
        if not ended:
            self.start()
            return 0
        self.exited = None
        self._close()
        return 0

    cdef str describe(self):
        return f"ChildOp pid={self.pid}"

    cdef object requester(self):
        return self.exited


def reap(process):
    """Reap the process of a Popen. Returns (its exit status, or None if it still runs; whether other code has taken the
    status).

    Works under Popen's own lock and stores the status in the Popen, because `poll()` in another thread, or in a transport's
    `close()`, may have reaped it first. Calls the kernel, not os.waitpid: gevent's replacement knows of no ended process
    while gevent's own loop does not run, and gevent's Popen has no lock."""
    cdef bint taken = False
    cdef int pid, status = 0
    with getattr(process, "_waitpid_lock", _NO_LOCK):
        if process.returncode is None:
            pid = waitpid(process.pid, &status, WNOHANG)
            if pid == 0:
                return None, False
            taken = pid < 0
            process.returncode = STATUS_TAKEN if taken else os.waitstatus_to_exitcode(status)
        return process.returncode, taken


def settle(transport, returncode):
    """Set the return code of asyncio's subprocess transport, and schedule its protocol's process_exited."""
    if transport._returncode is None:
        exited = transport._protocol.process_exited
        transport._returncode = returncode
        _soon(transport, exited, ())


def try_finish(transport):
    """Schedule connection_lost of its protocol, once the process and all of its pipes have ended."""
    if transport._returncode is None or transport._finished:
        return
    for pipe in transport._pipes.values():
        if pipe is None or not pipe.disconnected:
            return
    ended = transport._call_connection_lost
    transport._finished = True
    _soon(transport, ended, (None,))


cdef int _soon(transport, callback, tuple arguments) except -1:
    pending = transport._pending_calls
    if pending is None:
        transport._loop.call_soon(callback, *arguments)
    else:
        pending.append((callback, arguments))
    return 0
