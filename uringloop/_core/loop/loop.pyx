# Loop: the core of an event loop, and its turn. Owns the ready queue, the timers, the inbox and the engine of one loop. It
# decides when to enter the kernel, when to sleep, and what runs next. Programs schedule through calls.pyx and tasks.pyx;
# uringloop/loop.py is the asyncio interface.
#
# A turn collects completions (it sleeps first if nothing is ready), takes work from other threads, takes the timers that
# are due, then runs exactly what is ready by now. What those callbacks make ready runs in the next turn, so that no chain
# of callbacks keeps I/O, timers or other threads waiting. Code that gathers work over a turn (TLS encrypts all writes of a
# turn at once) queues itself for the end of the turn, which comes before the loop stops or sleeps.
import sys

from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF

from asyncio import base_events, events, format_helpers

from libc.stdint cimport INT64_MAX

from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.op cimport OP_CANCELLING, Op
from uringloop._core.engine.ready_queue cimport ReadyQueue, Runnable, ready_pop, ready_push
from uringloop._core.kernel.abi cimport ur_now_ns
from uringloop._core.lifetime.heap cimport keep_heap
from uringloop._core.loop.handle cimport Handle, make_handle, trim_free_handles
from uringloop._core.loop.inbox cimport Inbox
from uringloop._core.loop.monitor cimport LoopMonitor
from uringloop._core.loop.spinner cimport Spinner
from uringloop._core.loop.timers cimport Timers
from uringloop._core.loop.transport_table cimport TransportTable
from uringloop._core.lifetime.guard cimport (
    UR_FREE_THREADED, ur_guard_lock, ur_guard_unlock, ur_load_flag, ur_load_int, ur_load_ulong, ur_store_flag,
    ur_store_int, ur_store_ulong, ur_take_ulong,
)


cdef extern from *:
    """
    /* The Loop that this thread runs. An owned reference: a greenlet that ends its run after that of another greenlet could
     * otherwise restore a loop that is gone. */
    static __thread PyObject *ur_thread_loop;

    static PyObject *ur_swap_thread_loop(PyObject *loop) {
        PyObject *before = ur_thread_loop;
        ur_thread_loop = loop;
        return before;
    }
    """
    PyObject *ur_thread_loop
    PyObject *ur_swap_thread_loop(PyObject *loop) noexcept


cdef enum:
    TURN_END_ROUNDS = 8  # TLS over TLS needs one round for each layer


cdef Loop running_loop():
    """The Loop that this thread runs, or None: no loop, or one of another kind. Unlike asyncio's function, it makes no
    system call."""
    return None if ur_thread_loop is NULL else <Loop> ur_thread_loop


cdef PyObject *enter_run(Loop loop) noexcept:
    """Make this the thread's Loop; return the argument for `leave_run`."""
    Py_INCREF(loop)
    return ur_swap_thread_loop(<PyObject *> loop)


cdef void leave_run(PyObject *before) noexcept:
    Py_XDECREF(ur_swap_thread_loop(before))


cdef class Idler(Runnable):
    """Looks for work elsewhere before the loop sleeps: the scheduler's intake, which steals jobs that wait behind a busy
    context."""

    cdef bint schedule_stealing(self) except -1:
        """Called on the loop's thread, which already counts as asleep: another thread that brings work from now on wakes
        it. True: something is ready now."""
        return False


cdef class Loop:
    def __cinit__(self):
        # Make all parts here, because a subclass may forget __init__. Until `_set_up`, the loop is closed, and so is its
        # engine, which is of the base class and refuses everything.
        self.closed = True
        self.ready = ReadyQueue()
        self.turn_end_queue = ReadyQueue()
        self.timers = Timers()
        self.engine = Engine.__new__(Engine)
        self.engine.closed = True
        self.inbox = Inbox(self.engine)
        self.inbox.closed = True
        self.spinner = Spinner(0)
        self._transports = TransportTable()
        self.held_locks = {}

    def _set_up(self, engine_class, dict options, double busy_poll):
        """Make the engine. Not in __init__, because BaseEventLoop's __init__ takes that place."""
        if type(self.engine) is not Engine:
            raise RuntimeError(f"{type(self).__name__}.__init__() was called already")
        keep_heap()
        self.future_arguments = {"loop": self}
        cdef Engine engine = engine_class(self.ready, **options)
        if engine.wake_fd < 0:
            raise TypeError(f"{engine!r} is not an engine for a loop")
        engine.turn_end_queue = self.turn_end_queue
        self.engine = engine
        self.inbox = Inbox(self.engine)
        self.spinner = Spinner(busy_poll)

    def _alone(self, str refusal, function, *args):
        """Call a function that runs or closes the loop. If several threads do so at once, one goes on, and the others get a
        RuntimeError before they touch anything. Compiled, so that no signal can arrive between taking the loop and `try`."""
        cdef unsigned long this_thread = PyThread_get_thread_ident()
        if not ur_take_ulong(&self.holder, this_thread):
            if ur_load_ulong(&self.holder) == this_thread:
                return function(*args)
            raise RuntimeError(refusal)
        try:
            return function(*args)
        finally:
            ur_store_ulong(&self.holder, 0)

    def _run_until_stopped(self):
        """Run turns until stop() is called, and finish the turn in which it was called."""
        cdef bint taken = self.engine.acquire_lock()  # another thread may be closing a socket of the stopped loop
        cdef PyObject *before
        ur_store_ulong(&self.runner, PyThread_get_thread_ident())
        if taken:
            self.engine.release_lock()
        before = enter_run(self)
        try:
            self.engine.attach()
            try:
                self.starting = True
                if self.turn_end_queue.head is not NULL:
                    self.run_turn_end()  # operations that the last run left enter the kernel with this run's first turn
                self.starting = False
                while True:
                    self.turn()
                    if self._stopping:
                        break
            finally:
                self.end_run()
        finally:
            leave_run(before)
            self.engine.leave()
            ur_store_ulong(&self.runner, 0)  # last: from here on, another thread may run the loop

    cdef int end_run(self) except -1:
        """Submit the operations queued last now, not when the loop next runs: for example the cancel of a poll, which keeps
        its file open, or the send of data that a callback wrote before it raised SystemExit."""
        cdef int rounds = 0
        cdef PyObject *node
        self._stopping = True  # also if an exception ends the run
        while self.turn_end_queue.head is not NULL and rounds < TURN_END_ROUNDS:
            rounds += 1
            self.run_turn_end()
        if not self.engine.forked and self.engine.has_work():
            self.engine.collected_early = True  # before the next run, the program itself may read from the descriptors
            self.engine.poll()
            self.engine.reap()
            node = self.ready.head
            while node is not NULL:
                (<Runnable> node).run_ended()
                node = (<Runnable> node).next
        return 0

    def _run_once(self):
        cdef PyObject *before = enter_run(self)
        try:
            self.engine.attach()
            self.turn()
        finally:
            leave_run(before)

    cdef int turn(self) except -1:
        cdef int64_t deadline = INT64_MAX
        cdef bint wait = self.ready.head is NULL and self.turn_end_queue.head is NULL and not self._stopping
        self.turns += 1
        if wait and self.timers.count:
            deadline = self.timers.next_deadline()
            wait = deadline > ur_now_ns()
        if wait:
            self.park(deadline)
        elif self.engine.has_work() and not self.defers_poll():
            self.poll_engine()
        elif self.turns & 63 == 0:
            PyErr_CheckSignals()  # while compiled callbacks keep the loop busy, the interpreter can't check for signals
        if ur_load_flag(&self.inbox.filled):
            self.inbox.take(self.ready)
        if self.timers.count:
            self.timers.take_due(ur_now_ns(), self.ready)
        self.run_batch()
        if self.turn_end_queue.head is not NULL:
            self.run_turn_end()
        return 0

    cdef bint defers_poll(self) noexcept:
        """Don't enter the kernel in two consecutive turns just to collect arrivals: in the next turn, what this turn's
        callbacks send can enter with the same system call."""
        return self.last_poll_turn == self.turns - 1 and not self._stopping and self.engine.only_completions()

    cdef int poll_engine(self) except -1:
        """Enter the kernel without waiting: submit operations and collect completions."""
        self.last_poll_turn = self.turns
        self.engine.poll()
        return self.engine.reap()

    cdef int park(self, int64_t deadline) except -1:
        """Nothing is ready: wait until something is. This is the only place where the thread sleeps."""
        cdef int64_t since
        if self.spinner.window_ns():
            if self.engine.has_work():
                self.poll_engine()
            if self.ready.head is not NULL:
                return 0
            if self.spinner.spin(self.engine, self.inbox, deadline):
                return self.poll_engine() if self.engine.has_work() else 0
        if not self.inbox.fall_asleep():
            return self.poll_engine() if self.engine.has_work() else 0
        if self.idler is not None and self.idler.schedule_stealing():
            self.inbox.woke_up()
            return self.poll_engine() if self.engine.has_work() else 0
        self.last_poll_turn = self.turns
        trim_free_handles()
        since = self.spinner.asleep()
        if ur_load_int(&self.monitor_flags):
            self.monitor.falls_asleep()
        try:
            self.engine.sleep(deadline)
        finally:
            self.inbox.woke_up()
            if ur_load_int(&self.monitor_flags):
                self.monitor.wakes()
        self.spinner.awake(since, ur_load_flag(&self.inbox.filled))
        return self.engine.reap()

    cdef int run_batch(self) except -1:
        cdef ReadyQueue ready = self.ready
        cdef Py_ssize_t left = ready.count
        cdef PyObject *node
        if ur_load_int(&self.monitor_flags) | self._debug:
            return self.run_batch_watched()
        self.callbacks += left
        while left > 0 and ready.head is not NULL:
            left -= 1
            node = ready_pop(ready)
            try:
                (<Runnable> node).run(self)
            finally:
                Py_DECREF(<object> node)
        return 0

    cdef int run_turn_end(self) except -1:
        """Run the queue for the end of the turn. Work that this queues there runs at the end of the next turn, which doesn't
        sleep."""
        cdef Py_ssize_t left = self.turn_end_queue.count
        cdef PyObject *node
        while left > 0 and self.turn_end_queue.head is not NULL:
            left -= 1
            node = ready_pop(self.turn_end_queue)
            try:
                (<Runnable> node).run(self)
            finally:
                Py_DECREF(<object> node)
        return 0

    cdef int run_batch_watched(self) except -1:
        """The same as `run_batch`, in debug mode and with an observer."""
        cdef ReadyQueue ready = self.ready
        cdef LoopMonitor watch = self.monitor if ur_load_int(&self.monitor_flags) else None
        cdef Py_ssize_t ran = 0, left = ready.count
        cdef int64_t since = 0
        cdef PyObject *node
        cdef PyObject *called = NULL
        self.callbacks += left
        if watch is not None:
            watch.monitor_ops(self.engine.ops)
        while ran < left and ready.head is not NULL:
            ran += 1
            node = ready_pop(ready)
            if watch is not None:
                since = watch.begin(<Runnable> node, &called)
            try:
                if self._debug:
                    self.run_debugged(<Runnable> node)
                else:
                    (<Runnable> node).run(self)
            finally:
                if watch is not None:
                    watch.end(<Runnable> node, called, since)
                Py_DECREF(<object> node)
        if watch is not None:
            watch.turn_ended(self.turns, ran)
        return 0

    cdef int run_debugged(self, Runnable node) except -1:
        """In debug mode: log callbacks that take long."""
        cdef int64_t start = ur_now_ns()
        cdef double took
        cdef object culprit = node.culprit()
        self._current_handle = culprit if isinstance(culprit, Handle) else None
        try:
            node.run(self)
        finally:
            self._current_handle = None
        took = (ur_now_ns() - start) / 1e9
        if took >= self.slow_callback_duration and culprit is not None:
            # a transport calls its protocol without a handle, so the culprit may not be one
            what = base_events._format_handle(culprit) if isinstance(culprit, Handle) else repr(culprit)
            base_events.logger.warning("Executing %s took %.3f seconds", what, took)
        if isinstance(culprit, Handle) and not (<Handle> culprit).repeats:
            (<Handle> culprit).drop_callback()
        return 0

    cdef int check(self) except -1:
        if ur_load_flag(&self.closed):
            if type(self.engine) is Engine:
                raise RuntimeError(f"{type(self).__name__}.__init__() was not called")
            raise RuntimeError("Event loop is closed")
        return 0

    def _close_core(self):
        """Close what `_set_up` made: refuse work from other threads, drop what is queued, and end the operations in the
        kernel. If a signal interrupts that, the next call finishes it."""
        cdef bint taken = self.engine.acquire_lock()
        try:
            self.close_parts()
        finally:
            if taken:
                self.engine.release_lock()

    cdef int close_parts(self) except -1:
        if self.engine.closed:
            return 0
        self.inbox.close()
        self.inbox.take(self.ready)
        self.ready.clear()
        self.turn_end_queue.clear()
        self.timers.clear()
        self.future_arguments = self.idler = None  # they refer to the loop, and would keep it alive
        self.hand_locks_on()
        self.drain()
        self.engine.close()
        self.ready.clear()
        self.turn_end_queue.clear()
        self.keep_alive(False)
        return 0

    cdef int hand_locks_on(self) except -1:
        """Release the locks that tasks of this loop hold: the tasks will never run again, but may never be freed either."""
        while self.held_locks:
            claims, lock = self.held_locks.popitem()
            try:
                claims.loop_closed(self, lock)
            except Exception as error:
                self.call_exception_handler({
                    "message": f"Exception when the closed loop released {lock!r}", "exception": error})
        return 0

    cdef int drain(self) except -1:
        """Cancel all operations in the kernel, and wait for the last completion of each."""
        cdef Op op
        if self.engine.forked:
            for op in list(self.engine.ops):
                self.engine.ops.completed(op, -1, 0, self.ready)  # in the kernel, they belong to the parent
        else:
            self.engine.attach_to_drain()
        while self.engine.ops.count:
            for op in self.engine.ops:
                if op.state != OP_CANCELLING:
                    self.engine.cancel(op)
            self.engine.sleep(INT64_MAX)
            self.engine.reap()
            self.ready.clear()
        return 0

    cdef void keep_alive(self, bint kept) noexcept:
        """A closed loop has no finaliser any more. Until it is drained it holds a reference to itself, which keeps the memory
        alive that the kernel may still write to."""
        if kept and not self._kept_alive:
            Py_INCREF(self)
        elif self._kept_alive and not kept:
            Py_DECREF(self)
        self._kept_alive = kept

    def stop(self):
        """Make run_forever return after the callbacks of this turn."""
        self._stopping = True

    def is_running(self):
        return ur_load_ulong(&self.runner) != 0

    def is_closed(self):
        return bool(ur_load_flag(&self.closed))

    def get_debug(self):
        return self._debug

    def time(self):
        """Return the loop's time in seconds: CLOCK_MONOTONIC, read at each call."""
        return <double> ur_now_ns() / 1e9

    def _check_closed(self):
        self.check()

    def _check_running(self):
        if ur_load_ulong(&self.runner):
            raise RuntimeError("This event loop is already running")
        if events._get_running_loop() is not None:
            raise RuntimeError("Cannot run the event loop while another loop is running")

    def _check_thread(self):
        if ur_load_ulong(&self.runner) and not runs_here(self):
            raise RuntimeError("Non-thread-safe operation invoked on an event loop other than the current one")

    @property
    def _closed(self):
        return bool(ur_load_flag(&self.closed))

    @_closed.setter
    def _closed(self, value):
        if not value and self.engine.closed:
            if type(self.engine) is Engine:
                return  # BaseEventLoop.__init__ sets False before there is an engine
            raise RuntimeError("a closed event loop stays closed")
        ur_store_flag(&self.closed, bool(value))
        self.keep_alive(bool(value) and not self.engine.closed)

    @property
    def _thread_id(self):
        return ur_load_ulong(&self.runner) or None

    @_thread_id.setter
    def _thread_id(self, value):
        ur_store_ulong(&self.runner, value or 0)

    def _make_handle(self, callback, tuple args):
        """Make a handle that can run any number of times, without queuing it."""
        cdef Handle handle = make_handle(callback, args, None)
        handle.repeats = True
        handle.set_debug_info(self, format_helpers.extract_stack(sys._getframe(0)) if self._debug else None, None)
        return handle

    def _ready_handle(self, Handle handle):
        """Queue the handle; only in the loop's thread. Return False if it is queued already."""
        if handle.queued:
            return False
        ready_push(self.ready, handle)
        return True

    def _set_monitor_flags(self, int flags):
        """Set what the loop reports to `monitor` from the next turn on; 0 after the last observer has ended. Any thread may
        call it, one at a time (inspect/observers.py)."""
        if self.monitor is None:
            self.monitor = LoopMonitor()
        if flags:
            self.monitor.set_flags(flags)
        ur_store_int(&self.monitor_flags, flags)
        if not flags:
            self.monitor.set_flags(0)
        if flags and not self.closed:
            if not UR_FREE_THREADED:
                self.monitor.monitor_ops(self.engine.ops)  # at once: the loop may be stuck
            ur_guard_lock(&self.inbox.guard)
            self.inbox.wake()  # end a sleep that began before there was an observer: it wasn't recorded
            ur_guard_unlock(&self.inbox.guard)

    def _counts(self):
        """The figures for statistics()."""
        cdef Engine engine = self.engine
        return {
            "turns": self.turns, "callbacks": self.callbacks, "ready": self.ready.count,
            "timers": len(self.timers), "waiting": len(self.inbox), "in_kernel": engine.ops.count,
            "submitted": engine.submitted, "completed": engine.completed, "sleeps": engine.sleeps,
            "wakes": engine.wakes, "system_calls": engine.system_calls(),
            "buffers": engine.pool.count if engine.pool is not None else 0,
            "buffers_out": engine.pool.out if engine.pool is not None else 0,
        }
