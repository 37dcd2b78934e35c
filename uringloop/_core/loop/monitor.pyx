# LoopMonitor: the recorder of a loop's turns, sleeps, callbacks and operations, for observers. Owns the figures, the slowest
# callbacks of the last minute and the trace, all of them bounded. The first observer makes a loop's monitor, and the loop
# then keeps it; its flags say what the loop reports. It doesn't know the loop, and runs nothing but the hooks for slow
# callbacks.
#
# The readers are usually other threads, and must get an answer even if the loop is stuck, so nothing here waits for the
# loop. Data of more than one word is written and read under the guard, and no Python code runs meanwhile.
cimport cython
from asyncio.log import logger

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF, Py_XINCREF
from libc.stdint cimport INT64_MAX, uintptr_t
from libc.stdlib cimport calloc, free

from uringloop._core.engine.op cimport OP_IDLE
from uringloop._core.kernel.abi cimport ur_now_ns
from uringloop._core.loop.handle cimport Handle
from uringloop._core.lifetime.guard cimport (
    UR_FREE_THREADED, ur_guard_init, ur_guard_lock, ur_guard_unlock, ur_load_int, ur_store_int,
)

cdef extern from "Python.h":
    void PyErr_SetInterrupt() noexcept

cdef extern from *:
    """
    static inline PyObject *ur_type(PyObject *object) { return (PyObject *)Py_TYPE(object); }
    """
    PyObject *ur_type(object) noexcept

cdef enum WatchFlags:
    WATCH_TIMES = 1         # when callbacks begin, how long they and sleeps take, and the slowest callbacks
    WATCH_OPERATIONS = 2    # the operations in the kernel, and since when
    WATCH_SAMPLES = 4       # samples of how long callbacks take, for a histogram

cdef enum RecordKind:
    A_TURN
    A_SLEEP
    A_CALLBACK
    AN_OPERATION

cdef int64_t MINUTE_NS = 60 * 10**9

TIMES, OPERATIONS, SAMPLES = WATCH_TIMES, WATCH_OPERATIONS, WATCH_SAMPLES
KINDS = ("turn", "sleep", "callback", "operation")

cdef str _TURN = "turn"
cdef str _SLEEP = "sleep"


cdef class LoopMonitor(OpMonitor):
    def __cinit__(self):
        ur_guard_init(&self.guard)
        self.in_kernel = {}
        self.slow_hooks = []
        self.hook_floor_ns = INT64_MAX

    def __dealloc__(self):
        cdef int i
        for i in range(self.slow_count):
            _drop(&self.slowest[i])
        _drop_all(self.records, min(self.recorded, self.record_room))
        free(self.samples)

    # Called by the loop's thread

    cdef int64_t begin(self, Runnable node, PyObject **called) noexcept:
        """A callback begins. Sets `called` to the function that it calls; the caller passes that reference to `end`."""
        cdef object culprit = None
        cdef int64_t now
        if not isinstance(node, Handle):
            culprit = node.culprit()
        if isinstance(node, Handle):
            culprit = node
        called[0] = _owned(culprit)
        now = ur_now_ns()
        ur_guard_lock(&self.guard)
        self.begun += 1
        self.begun_ns = now
        self.called = called[0]
        self.kind = ur_type(node)
        ur_guard_unlock(&self.guard)
        return now

    cdef void end(self, Runnable node, PyObject *called, int64_t since) noexcept:
        cdef int64_t took = ur_now_ns() - since
        ur_guard_lock(&self.guard)
        self.begun_ns = 0
        self.called = NULL
        ur_guard_unlock(&self.guard)
        if self.samples is not NULL:
            self._sample(took)
        if took > self.slow_floor_ns or took >= self.hook_floor_ns or self.records is not NULL:
            self._slow(node, called, since, took)
        Py_XDECREF(called)

    cdef void turn_ended(self, long turn, long ran) noexcept:
        cdef int64_t now = ur_now_ns()
        if self.records is not NULL and self.mark_ns:
            self._record(A_TURN, self.mark_ns, now - self.mark_ns, turn, ran, _TURN, None)
        self.mark_ns = now
        if now > self.expiry_ns:
            self._forget_old(now)

    cdef void falls_asleep(self) noexcept:
        ur_guard_lock(&self.guard)
        self.asleep_ns = ur_now_ns()
        ur_guard_unlock(&self.guard)

    cdef void wakes(self) noexcept:
        cdef int64_t now = ur_now_ns(), since = self.asleep_ns
        self.mark_ns = now
        if not since:
            return  # there was no observer when it fell asleep
        ur_guard_lock(&self.guard)
        self.slept_ns += now - since
        self.asleep_ns = 0
        ur_guard_unlock(&self.guard)
        if self.records is not NULL:
            self._record(A_SLEEP, since, now - since, 0, 0, _SLEEP, None)

    cdef int monitor_ops(self, OpList ops) except -1:
        """Get reports of operations from now on, and store those in the kernel. Called by the loop's thread; with the GIL,
        by any thread."""
        if ops.monitor is self or not ur_load_int(&self.flags) & WATCH_OPERATIONS:
            return 0
        self.in_kernel.clear()
        ops.monitor = self
        for op in ops:
            address, entry = <uintptr_t> <PyObject *> op, (0, _kind_of(op), (<Op> op).fd)
            if (<Op> op).state != OP_IDLE:  # checked last: the lines above may have let the loop's thread run
                self.in_kernel.setdefault(address, entry)
        return 0

    cdef bint op_submitted(self, Op op) noexcept:
        if not ur_load_int(&self.flags) & WATCH_OPERATIONS:
            return False
        self.in_kernel[<uintptr_t> <PyObject *> op] = (ur_now_ns(), _kind_of(op), op.fd)
        return True

    cdef bint op_ended(self, Op op) noexcept:
        """Called inside the completion walk, so it makes no object that could start a garbage collection."""
        cdef int64_t since
        if not ur_load_int(&self.flags) & WATCH_OPERATIONS:
            return False
        entry = self.in_kernel.pop(<uintptr_t> <PyObject *> op, None)
        if entry is not None and self.records is not NULL:
            since = entry[0]
            if since:
                self._record(AN_OPERATION, since, ur_now_ns() - since, entry[2], 0, entry[1], None)
        return True

    cdef void _slow(self, Runnable node, PyObject *called, int64_t since, int64_t took) noexcept:
        """A callback was slow enough to be recorded with its name."""
        name, detail = _name(node, None if called is NULL else <object> called)
        if self.records is not NULL:
            self._record(A_CALLBACK, since, took, 0, 0, name, detail)
        if took > self.slow_floor_ns:
            self._keep_slow(name, detail, since, took)
        if took < self.hook_floor_ns:
            return
        with cython.critical_section(self):
            hooks = self.slow_hooks
        for least, hook in hooks:
            if took >= least:
                try:
                    hook(name, detail, since, took)
                except KeyboardInterrupt:
                    PyErr_SetInterrupt()  # an exception can't leave the loop from here, but from the next callback
                except BaseException:
                    logger.exception("A hook for slow callbacks failed")

    cdef void _keep_slow(self, object name, object detail, int64_t since, int64_t took) noexcept:
        cdef int i, at = self.slow_count
        cdef Record old
        old.name = old.detail = NULL
        if at == MOST_SLOW:
            at = 0
            for i in range(1, MOST_SLOW):
                if self.slowest[i].took_ns < self.slowest[at].took_ns:
                    at = i
            old = self.slowest[at]
        ur_guard_lock(&self.guard)
        _fill(&self.slowest[at], A_CALLBACK, since, took, 0, 0, name, detail)
        if self.slow_count < MOST_SLOW:
            self.slow_count += 1
        ur_guard_unlock(&self.guard)
        _drop(&old)
        self._set_floor()

    cdef void _set_floor(self) noexcept:
        cdef int i
        cdef int64_t floor = INT64_MAX, oldest = INT64_MAX
        for i in range(self.slow_count):
            floor = min(floor, self.slowest[i].took_ns)
            oldest = min(oldest, self.slowest[i].start_ns + self.slowest[i].took_ns)
        self.slow_floor_ns = floor if self.slow_count == MOST_SLOW else 0
        self.expiry_ns = oldest + MINUTE_NS if self.slow_count else INT64_MAX

    cdef void _forget_old(self, int64_t now) noexcept:
        cdef int i = 0
        cdef Record old
        while i < self.slow_count:
            if self.slowest[i].start_ns + self.slowest[i].took_ns + MINUTE_NS >= now:
                i += 1
                continue
            old = self.slowest[i]
            ur_guard_lock(&self.guard)
            self.slow_count -= 1
            self.slowest[i] = self.slowest[self.slow_count]
            ur_guard_unlock(&self.guard)
            _drop(&old)
        self._set_floor()

    cdef void _sample(self, int64_t took) noexcept:
        """Keep one duration in `sample_stride`. If there is no room, drop every second sample, and double the stride."""
        cdef int i
        if self.sample_skip:
            self.sample_skip -= 1
            return
        ur_guard_lock(&self.guard)
        if self.samples is not NULL:
            if self.sample_count == MOST_SAMPLES:
                self.sample_count //= 2
                self.sample_stride *= 2
                for i in range(self.sample_count):
                    self.samples[i] = self.samples[2 * i]
            self.samples[self.sample_count] = <float> (took / 1e9)
            self.sample_count += 1
        ur_guard_unlock(&self.guard)
        self.sample_skip = self.sample_stride - 1

    cdef void _record(self, uint8_t kind, int64_t start, int64_t took, int64_t number, int64_t ran, object name,
                      object detail) noexcept:
        cdef Record old
        cdef Record *place
        old.name = old.detail = NULL
        ur_guard_lock(&self.guard)
        if self.records is not NULL:
            place = &self.records[self.recorded % self.record_room]
            old = place[0]
            _fill(place, kind, start, took, number, ran, name, detail)
            self.recorded += 1
        ur_guard_unlock(&self.guard)
        _drop(&old)

    # Called by other threads

    def running(self):
        """The running callback as (the number of callbacks begun, when it began, the function called, its kind), or None.
        All times are nanoseconds of the monotonic clock."""
        cdef PyObject *called
        cdef PyObject *kind
        cdef int64_t since
        cdef long begun
        ur_guard_lock(&self.guard)
        since, begun, called, kind = self.begun_ns, self.begun, self.called, self.kind
        Py_XINCREF(called)
        ur_guard_unlock(&self.guard)
        if not since:
            return None
        owned = None if called is NULL else <object> called
        Py_XDECREF(called)
        return begun, since, owned, <object> kind

    def slept(self):
        """The total nanoseconds asleep until now, and whether the loop sleeps."""
        cdef int64_t slept, since
        ur_guard_lock(&self.guard)
        slept, since = self.slept_ns, self.asleep_ns
        ur_guard_unlock(&self.guard)
        return (slept + ur_now_ns() - since if since else slept), since != 0

    def slowest_callbacks(self):
        """The slowest callbacks of the last minute as (nanoseconds, when it began, name, detail), the slowest first."""
        cdef Record copies[MOST_SLOW]
        cdef int i, count
        ur_guard_lock(&self.guard)
        count = self.slow_count
        for i in range(count):
            copies[i] = self.slowest[i]
            Py_XINCREF(copies[i].name)
            Py_XINCREF(copies[i].detail)
        ur_guard_unlock(&self.guard)
        found = []
        for i in range(count):
            found.append((copies[i].took_ns, copies[i].start_ns, _text(copies[i].name), _text(copies[i].detail)))
            _drop(&copies[i])
        oldest = ur_now_ns() - MINUTE_NS
        return sorted([each for each in found if each[0] + each[1] >= oldest], key=lambda each: -each[0])

    def operations(self):
        """The operations in the kernel as (when submitted, or 0; kind; descriptor)."""
        return list(self.in_kernel.copy().values())

    def since(self, Op op):
        """When an operation was submitted; 0 if that is not known, or it is not in the kernel. Only in the loop's thread."""
        entry = self.in_kernel.get(<uintptr_t> <PyObject *> op)
        return 0 if entry is None else entry[0]

    def set_flags(self, int flags):
        """Choose what the loop reports. One caller at a time."""
        cdef float *samples = NULL
        if flags & WATCH_SAMPLES and self.samples is NULL:
            samples = <float *> calloc(MOST_SAMPLES, sizeof(float))
            if samples is NULL:
                raise MemoryError
        ur_guard_lock(&self.guard)
        if flags & WATCH_SAMPLES:
            if self.samples is NULL:
                self.samples, self.sample_count, self.sample_stride, self.sample_skip = samples, 0, 1, 0
                samples = NULL
        else:
            samples, self.samples = self.samples, NULL
        if not flags or not self.flags:
            self.asleep_ns = self.mark_ns = 0  # without an observer, the loop doesn't report the ends of sleep and turn
        ur_guard_unlock(&self.guard)
        free(samples)
        ur_store_int(&self.flags, flags)

    def take_samples(self):
        """Return durations of callbacks in seconds, evenly sampled since the last call."""
        cdef float *taken
        cdef float *fresh = <float *> calloc(MOST_SAMPLES, sizeof(float))
        cdef int i, count
        if fresh is NULL:
            raise MemoryError
        ur_guard_lock(&self.guard)
        taken, count = self.samples, self.sample_count
        if taken is not NULL:
            self.samples, self.sample_count, self.sample_stride, self.sample_skip = fresh, 0, 1, 0
            fresh = NULL
        ur_guard_unlock(&self.guard)
        free(fresh)
        if taken is NULL:
            return []
        found = [taken[i] for i in range(count)]
        free(taken)
        return found

    def start_trace(self, long room):
        """Keep the last `room` records from now on. Raises RuntimeError if there is a trace already."""
        cdef Record *records = <Record *> calloc(room, sizeof(Record))
        cdef bint busy
        if records is NULL:
            raise MemoryError
        ur_guard_lock(&self.guard)
        busy = self.records is not NULL
        if not busy:
            self.records, self.record_room, self.recorded = records, room, 0
        ur_guard_unlock(&self.guard)
        if busy:
            free(records)
            raise RuntimeError("this loop is being traced already")

    def take_trace(self):
        """End the trace; return ([(kind, start, took, number, ran, name, detail)], the number of records lost before)."""
        cdef Record *records
        cdef long room, recorded, i, at
        ur_guard_lock(&self.guard)
        records, room, recorded = self.records, self.record_room, self.recorded
        self.records = NULL
        self.recorded = 0
        ur_guard_unlock(&self.guard)
        if records is NULL:
            return [], 0
        found = []
        for i in range(max(0, recorded - room), recorded):
            at = i % room
            found.append((KINDS[records[at].kind], records[at].start_ns, records[at].took_ns, records[at].number,
                          records[at].ran, _text(records[at].name), _text(records[at].detail)))
        _drop_all(records, min(recorded, room))
        return found, max(0, recorded - room)

    def add_slow_hook(self, int64_t least_ns, hook):
        """Run hook(name, detail, began, took) in the loop's thread after each callback that took `least_ns` or longer."""
        with cython.critical_section(self):
            self.slow_hooks = [*self.slow_hooks, (least_ns, hook)]
            self.hook_floor_ns = min([least for least, _ in self.slow_hooks])

    def remove_slow_hook(self, hook):
        with cython.critical_section(self):
            self.slow_hooks = [each for each in self.slow_hooks if each[1] is not hook]
            self.hook_floor_ns = min([least for least, _ in self.slow_hooks], default=INT64_MAX)


def name_of(called, kind):
    """Return (name, detail) of the function that a callback calls, or, if that is None, of the kind of its Runnable."""
    if called is None:
        return kind.__name__, None
    try:
        owner = getattr(called, "__self__", called)
        if hasattr(owner, "get_coro"):
            coroutine = owner.get_coro()
            return getattr(coroutine, "__qualname__", None) or type(owner).__name__, owner.get_name()
        while hasattr(called, "func"):
            called = called.func
        name = getattr(called, "__qualname__", None)
        if isinstance(name, str):
            return name, None
        return type(called).__qualname__, kind.__name__
    except Exception:
        return type(called).__name__, None  # attributes of user objects may raise anything


cdef object _name(Runnable node, object called):
    if called is None and isinstance(node, Op):
        return _kind_of(node), None
    try:
        return name_of(called, type(node))
    except BaseException:
        PyErr_SetInterrupt()  # as above
        return type(called).__name__, None


cdef object _kind_of(op):
    try:
        return (<Op> op).describe()
    except Exception:
        return type(op).__name__


cdef PyObject *_owned(object culprit) noexcept:
    """The function that a handle calls, or the object itself: a new reference, or NULL. Without the GIL, another thread may
    cancel the handle at this moment."""
    cdef PyObject *called
    if not isinstance(culprit, Handle):
        called = NULL if culprit is None else <PyObject *> culprit
        Py_XINCREF(called)
    elif UR_FREE_THREADED:
        with cython.critical_section(culprit):
            called = (<Handle> culprit).callback
            Py_XINCREF(called)
    else:
        called = (<Handle> culprit).callback
        Py_XINCREF(called)
    return called


cdef object _text(PyObject *text):
    return None if text is NULL else <object> text


cdef void _fill(Record *record, uint8_t kind, int64_t start, int64_t took, int64_t number, int64_t ran, object name,
                object detail) noexcept:
    record.kind, record.start_ns, record.took_ns, record.number, record.ran = kind, start, took, number, ran
    Py_INCREF(name)
    record.name = <PyObject *> name
    record.detail = NULL if detail is None else <PyObject *> detail
    Py_XINCREF(record.detail)


cdef void _drop(Record *record) noexcept:
    Py_XDECREF(record.name)
    Py_XDECREF(record.detail)


cdef void _drop_all(Record *records, long count) noexcept:
    cdef long i
    if records is NULL:
        return
    for i in range(count):
        _drop(&records[i])
    free(records)
