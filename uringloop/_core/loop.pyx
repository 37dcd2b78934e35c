# Loop: the turn. Owns the ready queue, the timers, the inbox and the engine of one loop, and decides when to
# enter the kernel, when to sleep, and what runs next. The asyncio interface around it is uringloop/loop.py.
#
# A turn: learn what completed (sleeping first if nothing is ready), take what other threads handed in, take
# the timers that are due, then run exactly what is ready by now. What those callbacks make ready is the
# next turn's, so that no chain of callbacks keeps I/O, timers or other threads from their turn. What gathers over a
# turn (TLS encrypts what was written in it as one) asks for its end, which comes before the loop stops or sleeps.
import sys

from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_XINCREF

from asyncio import base_events, events, format_helpers, futures

from uringloop._core.engine cimport Engine
from uringloop._core.handle cimport (
    WAITS_FOR_SHARED, Handle, TimerHandle, make_handle, new_handle, new_timer_handle, trim_free_handles,
)
from uringloop._core.inbox cimport Inbox
from uringloop._core.kernel cimport (
    INT64_MAX, UR_FREE_THREADED, ur_add_fast_method, ur_guard_lock, ur_guard_unlock, ur_load_flag,
    ur_load_int, ur_load_ulong, ur_now_ns, ur_store_flag, ur_store_int, ur_store_ulong,
)
from uringloop._core.op cimport OP_CANCELLING, Op
from uringloop._core.ready cimport ReadyQueue, Runnable, ready_pop, ready_push, ready_push_owned
from uringloop._core.spin cimport Spinner
from uringloop._core.timers cimport Timers, deadline_of
from uringloop._core.watch cimport Watch

cdef extern from "Python.h":
    double PyLong_AsDouble(object number) except? -1
    object PyObject_Call(object callable, object args, object kwargs)

cdef extern from *:
    """
    static inline PyObject *ur_steal(PyObject *owned) { return owned; }
    """
    object steal "ur_steal"(PyObject *owned)  # the reference becomes the result's
    Py_ssize_t PyTuple_GET_SIZE(PyObject *items) noexcept
    PyObject *PyTuple_GET_ITEM(PyObject *items, Py_ssize_t i) noexcept

# Looked up at each call, as asyncio does: programs put classes of their own there.
cdef dict _futures = futures.__dict__
cdef tuple _NO_ARGUMENTS = ()
cdef str _CONTEXT = "context"


cdef class Loop:
    def __cinit__(self):
        self.closed = True  # until all of it is there: nothing to close, or to warn of, where a part fails

    def _set_up(self, engine_class, dict options, double busy_poll):
        """Make the parts. Not __init__: that is BaseEventLoop's, which sets attributes only."""
        self.future_arguments = {"loop": self}
        self.ready = ReadyQueue()
        self.endings = ReadyQueue()
        self.timers = Timers()
        self.engine = engine_class(self.ready, **options)
        self.inbox = Inbox(self.engine)
        self.spinner = Spinner(busy_poll)

    def _run_until_stopped(self):
        """Turn until stop() was called; then the turn it was called in is finished."""
        self.engine.attach()
        ur_store_ulong(&self.runner, PyThread_get_thread_ident())
        try:
            while True:
                self.turn()
                if self._stopping:
                    break
            # What was submitted last (a cancelled poll, say, which keeps its file open) takes effect now,
            # not when the loop next runs.
            if self.engine.has_work():
                self.engine.poll()
        finally:
            ur_store_ulong(&self.runner, 0)

    def _run_once(self):
        self.engine.attach()
        self.turn()

    cdef int turn(self) except -1:
        cdef int64_t deadline = INT64_MAX
        cdef bint wait = self.ready.head is NULL and self.endings.head is NULL and not self._stopping
        self.turns += 1
        if wait and self.timers.count:
            deadline = self.timers.next_deadline()
            wait = deadline > ur_now_ns()
        if wait:
            self.rest(deadline)
        elif self.engine.has_work() and not self.puts_off():
            self.look()
        elif self.turns & 63 == 0:
            PyErr_CheckSignals()  # a chain of compiled callbacks gives the interpreter no other occasion
        if ur_load_flag(&self.inbox.filled):
            self.inbox.take(self.ready)
        if self.timers.count:
            self.timers.take_due(ur_now_ns(), self.ready)
        self.run_batch()
        if self.endings.head is not NULL:
            self.run_endings()
        return 0

    cdef bint puts_off(self) noexcept:
        """Not in two turns running for arrivals alone: what this turn's callbacks send enters with them in the next."""
        return self.asked == self.turns - 1 and not self._stopping and self.engine.only_arrivals()

    cdef int look(self) except -1:
        """Enter the kernel without waiting: submit, and learn what completed."""
        self.asked = self.turns
        self.engine.poll()
        return self.engine.reap()

    cdef int rest(self, int64_t deadline) except -1:
        """Nothing is ready: wait, in the one place where the thread sleeps, until there is something."""
        cdef int64_t since
        if self.spinner.window():
            if self.engine.has_work():
                self.look()
            if self.ready.head is not NULL:
                return 0
            if self.spinner.spin(self.engine, self.inbox, deadline):
                return self.look() if self.engine.has_work() else 0
        if not self.inbox.fall_asleep():
            return self.look() if self.engine.has_work() else 0
        self.asked = self.turns
        trim_free_handles()
        since = self.spinner.asleep()
        if self.watching:
            self.watch.falls_asleep()
        try:
            self.engine.sleep(deadline)
        finally:
            self.inbox.woke_up()
            if self.watching:
                self.watch.wakes()
        self.spinner.awake(since, ur_load_flag(&self.inbox.filled))
        return self.engine.reap()

    cdef int run_batch(self) except -1:
        cdef ReadyQueue ready = self.ready
        cdef Py_ssize_t left = ready.count
        cdef PyObject *node
        if self.watching | self._debug:
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

    cdef int run_endings(self) except -1:
        """What these ask for in their turn is the next turn's, which does not sleep before."""
        cdef Py_ssize_t left = self.endings.count
        cdef PyObject *node
        while left > 0 and self.endings.head is not NULL:
            left -= 1
            node = ready_pop(self.endings)
            try:
                (<Runnable> node).run(self)
            finally:
                Py_DECREF(<object> node)
        return 0

    cdef int run_batch_watched(self) except -1:
        """The same in debug mode, and while somebody looks."""
        cdef ReadyQueue ready = self.ready
        cdef Watch watch = self.watch if ur_load_int(&self.watching) else None
        cdef Py_ssize_t ran = 0, left = ready.count
        cdef int64_t since = 0
        cdef PyObject *node
        cdef PyObject *called = NULL
        self.callbacks += left
        if watch is not None:
            watch.look_at(self.engine.ops)
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
        """Debug mode: name the callback that holds the loop up."""
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
            # a transport calls its protocol without a handle between them
            what = base_events._format_handle(culprit) if isinstance(culprit, Handle) else repr(culprit)
            base_events.logger.warning("Executing %s took %.3f seconds", what, took)
        if isinstance(culprit, Handle) and not (<Handle> culprit).repeats:
            (<Handle> culprit).let_go()
        return 0

    cdef int check(self) except -1:
        if ur_load_flag(&self.closed):
            raise RuntimeError("Event loop is closed")
        return 0

    def _close_core(self):
        """Close what `_set_up` made: refuse hand-ins, drop what was to run, end what is in the kernel."""
        cdef Op op
        self.inbox.close()
        self.inbox.take(self.ready)
        self.ready.clear()
        self.endings.clear()
        self.timers.clear()
        self.future_arguments = None  # they hold the loop, which is to be free as soon as nobody else does
        if self.engine.closed:
            return
        if self.engine.forked:
            for op in list(self.engine.ops):
                self.engine.ops.completed(op, -1, 0, self.ready)  # the kernel's half is the parent's
        else:
            self.engine.attach()
        while self.engine.ops.count:
            for op in self.engine.ops:
                if op.state != OP_CANCELLING:
                    self.engine.cancel(op)
            self.engine.sleep(INT64_MAX)
            self.engine.reap()
            self.ready.clear()
        self.engine.close()
        self.ready.clear()
        self.endings.clear()

    def stop(self):
        """End run_forever once the callbacks of this turn have run."""
        self._stopping = True

    def is_running(self):
        return ur_load_ulong(&self.runner) != 0

    def is_closed(self):
        return bool(ur_load_flag(&self.closed))

    def get_debug(self):
        return self._debug

    def time(self):
        """Seconds by the clock itself (CLOCK_MONOTONIC), read at each call."""
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
        ur_store_flag(&self.closed, bool(value))

    @property
    def _thread_id(self):
        return ur_load_ulong(&self.runner) or None

    @_thread_id.setter
    def _thread_id(self, value):
        ur_store_ulong(&self.runner, value or 0)

    def _make_handle(self, callback, tuple args):
        """A handle nobody queued yet, to be run any number of times."""
        cdef Handle handle = make_handle(callback, args, None)
        handle.repeats = True
        handle.note(self, format_helpers.extract_stack(sys._getframe(0)) if self._debug else None)
        return handle

    def _ready_handle(self, Handle handle):
        """Queue it: for the loop's thread only."""
        if not handle.queued:
            ready_push(self.ready, handle)

    def _look(self, int flags):
        """Somebody looks, or (0) nobody any more: what `watch` is told from the next turn on. From any thread, one at
        a time (inspect/looking.py)."""
        if self.watch is None:
            self.watch = Watch()
        if flags:
            self.watch.set_flags(flags)
        ur_store_int(&self.watching, flags)
        if not flags:
            self.watch.set_flags(0)
        if flags and not self.closed:
            if not UR_FREE_THREADED:
                self.watch.look_at(self.engine.ops)  # at once: the loop may be stuck
            ur_guard_lock(&self.inbox.guard)
            self.inbox.wake()  # a sleep that nobody looked at when it began would not be seen
            ur_guard_unlock(&self.inbox.guard)

    def _counts(self):
        """The raw figures behind statistics()."""
        cdef Engine engine = self.engine
        return {
            "turns": self.turns, "callbacks": self.callbacks, "ready": self.ready.count,
            "timers": len(self.timers), "waiting": len(self.inbox), "in_kernel": engine.ops.count,
            "submitted": engine.submitted, "completed": engine.completed, "sleeps": engine.sleeps,
            "wakes": engine.wakes, "system_calls": engine.system_calls(),
            "buffers": engine.pool.count if engine.pool is not None else 0,
            "buffers_out": engine.pool.out if engine.pool is not None else 0,
        }


cdef PyObject *_context(PyObject **args, Py_ssize_t nargs, PyObject *kwnames, str name) except? NULL:
    """The one keyword of the call_soon family, borrowed; NULL where it was not given."""
    if kwnames is NULL:
        return NULL
    for key in <tuple> kwnames:
        if key != _CONTEXT:
            raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
    return args[nargs]


cdef inline PyObject *_context_fast(PyObject **args, Py_ssize_t nargs, PyObject *kwnames, str name) except? NULL:
    # Tasks and futures give it with every call, under its interned name.
    if kwnames is NULL:
        return NULL
    if PyTuple_GET_SIZE(kwnames) == 1 and PyTuple_GET_ITEM(kwnames, 0) == <PyObject *> _CONTEXT:
        return args[nargs]
    return _context(args, nargs, kwnames, name)


cdef int _missing(str name, str what) except -1:
    raise TypeError(f"{name}() missing required positional argument: {what}")


cdef int _watch_call(Loop loop, PyObject *callback, str name, bint same_thread) except -1:
    """Debug mode, before a callback is accepted."""
    if same_thread:
        loop._check_thread()
    loop._check_callback(<object> callback, name)
    return 0


cdef int _watch_handle(Loop loop, PyObject *handle) except -1:
    """Debug mode, after: remember where it was made."""
    return (<Handle> handle).note(loop, format_helpers.extract_stack(sys._getframe(0)))


cdef object _call_soon(PyObject *self, PyObject **args, Py_ssize_t nargs, PyObject *kwnames):
    cdef Loop loop = <Loop> self
    cdef PyObject *handle
    if nargs < 1:
        _missing("call_soon", "'callback'")
    if ur_load_flag(&loop.closed):
        loop.check()
    if loop._debug:
        _watch_call(loop, args[0], "call_soon", True)
    handle = new_handle(args[0], args + 1, nargs - 1, _context_fast(args, nargs, kwnames, "call_soon"))
    if loop._debug:
        _watch_handle(loop, handle)
    if ur_load_flag(&loop.inbox.filled):
        # Another thread was first: what it handed in before runs before.
        loop.inbox.take(loop.ready)
    Py_XINCREF(handle)
    ready_push_owned(loop.ready, handle)
    return steal(handle)


cdef object _call_soon_threadsafe(PyObject *self, PyObject **args, Py_ssize_t nargs, PyObject *kwnames):
    cdef Loop loop = <Loop> self
    cdef PyObject *handle
    if nargs < 1:
        _missing("call_soon_threadsafe", "'callback'")
    if ur_load_flag(&loop.closed):
        loop.check()
    if loop._debug:
        _watch_call(loop, args[0], "call_soon_threadsafe", False)
    handle = new_handle(args[0], args + 1, nargs - 1, _context_fast(args, nargs, kwnames, "call_soon_threadsafe"))
    (<Handle> handle).shared = WAITS_FOR_SHARED
    result = steal(handle)
    if loop._debug:
        _watch_handle(loop, handle)
    # On the loop's own thread, a signal handler's too, it joins what call_soon queued, in order.
    if runs_here(loop):
        Py_XINCREF(handle)
        ready_push_owned(loop.ready, handle)
    else:
        loop.inbox.push(<Runnable> handle)
    return result


cdef object _schedule(Loop loop, double when, PyObject **args, Py_ssize_t nargs, PyObject *cvars, str name):
    cdef PyObject *handle
    if ur_load_flag(&loop.closed):
        loop.check()
    if loop._debug:
        _watch_call(loop, args[1], name, True)
    handle = new_timer_handle(when, args[1], args + 2, nargs - 2, cvars)
    result = steal(handle)
    if loop._debug:
        _watch_handle(loop, handle)
    loop.timers.add(deadline_of(when), <TimerHandle> handle)
    return result


cdef object _call_later(PyObject *self, PyObject **args, Py_ssize_t nargs, PyObject *kwnames):
    cdef double when
    cdef object delay
    if nargs < 2:
        _missing("call_later", "'delay'" if nargs < 1 else "'callback'")
    delay = <object> args[0]
    if type(delay) is float:
        when = <double> ur_now_ns() / 1e9 + <double> delay
    elif type(delay) is int:
        when = <double> ur_now_ns() / 1e9 + PyLong_AsDouble(delay)  # which makes no float object
    elif delay is None:
        raise TypeError("delay must not be None")
    else:
        when = (<Loop> self).time() + delay
    return _schedule(<Loop> self, when, args, nargs, _context_fast(args, nargs, kwnames, "call_later"), "call_later")


cdef object _call_at(PyObject *self, PyObject **args, Py_ssize_t nargs, PyObject *kwnames):
    cdef object when
    if nargs < 2:
        _missing("call_at", "'when'" if nargs < 1 else "'callback'")
    when = <object> args[0]
    if when is None:
        raise TypeError("when cannot be None")
    return _schedule(<Loop> self, when, args, nargs, _context_fast(args, nargs, kwnames, "call_at"), "call_at")


cdef object _create_future(PyObject *self, PyObject **args, Py_ssize_t nargs, PyObject *kwnames):
    if nargs or kwnames is not NULL:
        raise TypeError("create_future() takes no arguments")
    arguments = (<Loop> self).future_arguments
    if arguments is None:  # the loop is closed
        arguments = {"loop": <object> self}
    return PyObject_Call(_futures["Future"], _NO_ARGUMENTS, arguments)


ur_add_fast_method(Loop, "call_soon", <void *> _call_soon,
                   "Run the callback in the next turn.")
ur_add_fast_method(Loop, "call_soon_threadsafe", <void *> _call_soon_threadsafe,
                   "Run the callback soon; from any thread.")
ur_add_fast_method(Loop, "call_later", <void *> _call_later,
                   "Run the callback once `delay` seconds have passed, never before.")
ur_add_fast_method(Loop, "call_at", <void *> _call_at,
                   "Run the callback at the time `when` of this loop's clock, never before.")
ur_add_fast_method(Loop, "create_future", <void *> _create_future,
                   "A future attached to this loop.")
