from libc.stdint cimport int64_t

from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.ready cimport ReadyQueue, Runnable
from uringloop._core.kernel.abi cimport ur_coarse_ns
from uringloop._core.loop.inbox cimport Inbox
from uringloop._core.loop.spin cimport Spinner
from uringloop._core.loop.timers cimport Timers
from uringloop._core.loop.transport_table cimport TransportTable
from uringloop._core.loop.watch cimport LoopMonitor
from uringloop._core.objects.guard cimport ur_load_ulong

cdef class Idler(Runnable):
    cdef bint schedule_stealing(self) except -1


cdef class Loop:
    # The loop's thread only, unless said otherwise.
    cdef readonly Engine engine
    cdef ReadyQueue ready
    cdef ReadyQueue turn_end_queue        # what runs when this turn ends, once
    cdef Timers timers
    cdef Inbox inbox
    cdef Spinner spinner
    cdef Idler idler                      # asked before every sleep; None: nobody. Set before it runs
    cdef unsigned long runner             # the identifier of the thread that runs it, 0 while none does; read by any
    cdef unsigned long holder             # the thread that is about to run it, runs it or closes it, else 0; of any thread
    cdef public bint _stopping
    cdef bint starting                    # the run has begun, and its first turn has not
    cdef int closed                       # read by any thread
    cdef readonly bint _kept_alive         # by itself: closed, and not drained yet
    cdef public bint _debug
    cdef public object _task_factory
    cdef readonly TransportTable _transports
    cdef dict future_arguments            # {"loop": self}: the keywords of every future, made once; None: closed
    cdef public double slow_callback_duration
    cdef readonly LoopMonitor monitor     # None until somebody first looks; then never another
    cdef int monitor_flags                # what it is to be told, 0: nothing; written by any thread
    cdef readonly long turns
    cdef long last_poll_turn              # the last turn that entered the kernel
    cdef long last_write_turn             # the last turn in which something was written
    cdef int64_t first_write_ns           # ... and when it was first, by the kernel's coarse clock, or LONG_TURN
    cdef readonly long callbacks          # runnables run
    cdef long calls_turn                  # the turn that `calls_left` is of
    cdef long calls_left                  # how often all connections may still offer a small buffer in it
    cdef long file_turn                   # the turn that `file_share` is of
    cdef int file_share                   # what files may still do in it without letting others run
    cdef dict held_locks                  # by claims: the locks that tasks acquired and that close() hands on. Any thread,
                                          # by the dict's atomic operations (sync/claims.pyx)

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
    LONG_TURN = 0                         # in place of the time: more than LONG_NS have passed


cdef inline bint sends_at_once(Loop loop, bint more) noexcept:
    """Does no turn end soon that would carry what is written now? No thread runs the loop, or this turn has taken long since
    its first write. The clock is read for the first write of a turn, and for one that finds `more` queued before it."""
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
    CALLS_OF_ONE = 64                     # small buffers of one BufferedProtocol that are filled in one turn
    CALLS_A_TURN = 1024                   # ... and of all


cdef inline bint may_fill(Loop loop, long *turn, long *called) noexcept:
    """Has this turn room for one more buffer? For one of each connection always: `called` counts its own, in `turn`."""
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
    """Is this the thread that runs the loop? From any thread."""
    return ur_load_ulong(&loop.runner) == PyThread_get_thread_ident()
