from libc.stdint cimport int64_t

from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.ready_queue cimport ReadyQueue, Runnable
from uringloop._core.kernel.abi cimport ur_coarse_ns
from uringloop._core.loop.inbox cimport Inbox
from uringloop._core.loop.monitor cimport LoopMonitor
from uringloop._core.loop.spinner cimport Spinner
from uringloop._core.loop.timers cimport Timers
from uringloop._core.loop.transport_table cimport TransportTable
from uringloop._core.lifetime.guard cimport ur_load_ulong

cdef class Idler(Runnable):
    cdef bint schedule_stealing(self) except -1


cdef class Loop:
    # Only the loop's thread uses these fields, unless said otherwise.
    cdef readonly Engine engine
    cdef ReadyQueue ready
    cdef ReadyQueue turn_end_queue        # runnables that run once at the end of this turn
    cdef Timers timers
    cdef Inbox inbox
    cdef Spinner spinner
    cdef Idler idler                      # called before every sleep, or None; set before the loop runs
    cdef unsigned long runner             # the ID of the thread that runs it, or 0; read by any thread
    cdef unsigned long holder             # the ID of the thread that is about to run it, runs it or closes it, or 0; set by any thread
    cdef public bint _stopping
    cdef bint starting                    # the run has begun, but not its first turn
    cdef int closed                       # read by any thread
    cdef readonly bint _kept_alive         # closed, but not drained yet: the loop holds a reference to itself
    cdef public bint _debug
    cdef public object _task_factory
    cdef readonly TransportTable _transports
    cdef dict future_arguments            # {"loop": self}: the keyword arguments of all futures; None: closed
    cdef public double slow_callback_duration
    cdef readonly LoopMonitor monitor     # None until the first observer; then it stays the same
    cdef int monitor_flags                # what the loop reports to it, 0: nothing; written by any thread
    cdef readonly long turns
    cdef long last_poll_turn              # the last turn that entered the kernel
    cdef long last_write_turn             # the last turn in which a transport wrote
    cdef int64_t first_write_ns           # the time of its first write, by the kernel's coarse clock, or LONG_TURN
    cdef readonly long callbacks          # the number of runnables run
    cdef long calls_turn                  # the turn that `calls_left` belongs to
    cdef long calls_left                  # how many small buffers all connections may still fill in that turn
    cdef long file_turn                   # the turn that `file_share` belongs to
    cdef int file_share                   # how much work files may still do in that turn without letting others run
    cdef dict held_locks                  # by claims: the locks that tasks acquired and that close() hands on. Any thread,
                                          # by the dict's atomic operations (sync/lock_claims.pyx)

    cdef int turn(self) except -1
    cdef bint defers_poll(self) noexcept
    cdef int poll_engine(self) except -1
    cdef int park(self, int64_t deadline) except -1
    cdef int run_batch(self) except -1
    cdef int run_batch_watched(self) except -1
    cdef int run_debugged(self, Runnable node) except -1
    cdef int run_turn_end(self) except -1
    cdef int end_run(self) except -1
    cdef int check(self) except -1
    cdef int close_parts(self) except -1
    cdef int hand_locks_on(self) except -1
    cdef int drain(self) except -1
    cdef void keep_alive(self, bint kept) noexcept


cdef Loop running_loop()

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept nogil


cdef enum:
    LONG_NS = 20_000_000
    LONG_TURN = 0                         # instead of the time: more than LONG_NS have passed


cdef inline bint sends_at_once(Loop loop, bint more) noexcept:
    """Whether data written now must be sent at once, because no turn will end soon and send it: no thread runs the loop, or
    this turn has already taken long since its first write. The clock is read for the first write of a turn, and for a write
    with `more` data queued before it."""
    if ur_load_ulong(&loop.runner) == 0:
        return True
    if loop.last_write_turn != loop.turns:
        loop.last_write_turn, loop.first_write_ns = loop.turns, ur_coarse_ns()
        return False
    if loop.first_write_ns != LONG_TURN:
        if not more or ur_coarse_ns() - loop.first_write_ns <= LONG_NS:
            return False
        loop.first_write_ns = LONG_TURN
    return True


cdef enum:
    CALLS_OF_ONE = 64                     # the most small buffers of one BufferedProtocol that are filled in one turn
    CALLS_A_TURN = 1024                   # ... and of all together


cdef inline bint may_fill(Loop loop, long *turn, long *called) noexcept:
    """Whether this turn may fill one more buffer. Each connection may always fill one; `called` counts its buffers in `turn`.
    """
    if loop.calls_turn != loop.turns:
        loop.calls_turn, loop.calls_left = loop.turns, CALLS_A_TURN
    if turn[0] != loop.turns:
        turn[0], called[0] = loop.turns, 0
    elif called[0] == CALLS_OF_ONE or loop.calls_left <= 0:
        return False
    called[0] += 1
    loop.calls_left -= 1
    return True


cdef inline bint runs_here(Loop loop) noexcept:
    """Whether the calling thread runs the loop; called from any thread."""
    return ur_load_ulong(&loop.runner) == PyThread_get_thread_ident()
