# Timers: who is to run when. Owns one reference to each scheduled TimerHandle until it is due or swept.
#
# Programs mostly schedule in the order of the deadlines: the same timeout again and again, or sleeps of a length.
# Such timers stand in a line, where adding and taking cost the same however many there are; one that is due before
# the end of the line goes to a heap. Cancelling is lazy: a cancelled handle stays, emptied, until it comes to the
# front or until half of all are such, when all of them go at once; one that happens to be the last added goes
# immediately, which is where the usual "schedule, then cancel soon" finds it. Reads no clock.
from cpython.object cimport PyObject, traverseproc, visitproc
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdlib cimport free, realloc
from libc.string cimport memmove

from uringloop._core.handle cimport TimerHandle, TimerKeeper
from uringloop._core.kernel cimport INT64_MAX, INT64_MIN, int64_t, uint64_t, ur_get_traverse, ur_set_traverse, ur_visit_owned
from uringloop._core.ready cimport ReadyQueue, ready_push_owned

cdef extern from "<math.h>" nogil:
    double ceil(double)

cdef enum:
    FEW = 64         # cancelled: a sweep of less costs more than it frees
    SHORT_LINE = 2   # one so short is given up for a timer that does not fit behind it


cdef int64_t deadline_of(double when) noexcept:
    """The first nanosecond that is not before `when` as `time()` would show it. Not a number: now."""
    cdef double ns = ceil(when * 1e9)
    cdef int64_t first
    if not ns < 9.2e18:
        return INT64_MAX if ns == ns else INT64_MIN
    if ns < -9.2e18:
        return INT64_MIN
    first = <int64_t> ns
    return first + 1 if <double> first / 1e9 < when else first


cdef inline bint _before(Deadline *a, Deadline *b) noexcept nogil:
    return a.when_ns < b.when_ns or (a.when_ns == b.when_ns and a.order < b.order)


cdef inline Deadline *_room(Deadline *entries, Py_ssize_t *size) except NULL:
    """Twice as much of it."""
    cdef Py_ssize_t larger = size[0] * 2 if size[0] else 64
    entries = <Deadline *> realloc(entries, larger * sizeof(Deadline))
    if entries is NULL:
        raise MemoryError
    size[0] = larger
    return entries


cdef class Timers(TimerKeeper):
    def __dealloc__(self):
        self.clear()
        free(self.line)
        free(self.heap)

    def __len__(self):
        return self.count - self.cancelled

    def __repr__(self):
        return f"<Timers {self.count - self.cancelled} scheduled, {self.cancelled} cancelled>"

    cdef int add(self, int64_t when_ns, TimerHandle handle) except -1:
        cdef Deadline entry
        cdef Py_ssize_t length = self.line_end - self.line_first
        entry.when_ns = when_ns
        entry.order = self.scheduled
        entry.handle = <PyObject *> handle
        if length == 0 or when_ns >= self.line[self.line_end - 1].when_ns:
            self._to_line(&entry)
        elif length > SHORT_LINE:
            self._to_heap(&entry)
        else:
            while self.line_first < self.line_end:
                self._to_heap(&self.line[self.line_first])
                self.line_first += 1
            self._to_line(&entry)
        self.scheduled += 1
        self.count += 1
        handle.keeper = <PyObject *> self
        Py_INCREF(handle)
        return 0

    cdef int _to_line(self, Deadline *entry) except -1:
        cdef Py_ssize_t length = self.line_end - self.line_first
        if length == 0:
            self.line_first = self.line_end = 0
        elif self.line_end == self.line_size and self.line_first > length:
            memmove(self.line, self.line + self.line_first, length * sizeof(Deadline))
            self.line_first, self.line_end = 0, length
        if self.line_end == self.line_size:
            self.line = _room(self.line, &self.line_size)
        self.line[self.line_end] = entry[0]
        self.line_end += 1
        return 0

    cdef int _to_heap(self, Deadline *entry) except -1:
        if self.heap_count == self.heap_size:
            self.heap = _room(self.heap, &self.heap_size)
        self.heap[self.heap_count] = entry[0]
        self.heap_count += 1
        self._sift_up(self.heap_count - 1)
        return 0

    cdef void note_cancelled(self, TimerHandle handle) noexcept:
        """Called by the handle, once, while it is here."""
        handle.keeper = NULL
        if self.line_end > self.line_first and self.line[self.line_end - 1].handle == <PyObject *> handle:
            self.line_end -= 1
        elif self.heap_count and self.heap[self.heap_count - 1].handle == <PyObject *> handle:
            self.heap_count -= 1
        else:
            self.cancelled += 1
            if self.cancelled > FEW and self.cancelled * 2 > self.count:
                self._sweep()
            return
        self.count -= 1
        Py_DECREF(handle)

    cdef Deadline *_first(self) noexcept:
        """The one that is due next; not called without any."""
        if self.line_first == self.line_end:
            return self.heap
        if self.heap_count and _before(self.heap, &self.line[self.line_first]):
            return self.heap
        return &self.line[self.line_first]

    cdef PyObject *_pop(self, Deadline *first) noexcept:
        """Take out what `_first` found; its reference is the caller's."""
        cdef PyObject *handle = first.handle
        self.count -= 1
        if first != self.heap:
            self.line_first += 1
            return handle
        self.heap_count -= 1
        if self.heap_count:
            self.heap[0] = self.heap[self.heap_count]
            self._sift_down(0)
        return handle

    cdef int64_t next_deadline(self) noexcept:
        """When to wake; INT64_MAX without a timer."""
        cdef Deadline *first
        while self.count:
            first = self._first()
            if not (<TimerHandle> first.handle)._cancelled:
                return first.when_ns
            self.cancelled -= 1
            Py_DECREF(<object> self._pop(first))
        return INT64_MAX

    cdef void take_due(self, int64_t now_ns, ReadyQueue ready) noexcept:
        """Move those whose time has come into the ready queue, in order. Never one before its time."""
        cdef Deadline *first
        cdef PyObject *handle
        while self.count:
            first = self._first()
            if first.when_ns > now_ns:
                break
            handle = self._pop(first)
            if (<TimerHandle> handle)._cancelled:
                self.cancelled -= 1
                Py_DECREF(<object> handle)
                continue
            (<TimerHandle> handle).keeper = NULL
            ready_push_owned(ready, handle)

    cdef void clear(self) noexcept:
        cdef PyObject *handle
        while self.count:
            handle = self._pop(self._first())
            (<TimerHandle> handle).keeper = NULL
            (<TimerHandle> handle).dropped()
            Py_DECREF(<object> handle)
        self.cancelled = 0

    cdef void _sift_up(self, Py_ssize_t at) noexcept:
        cdef Deadline moving = self.heap[at]
        cdef Py_ssize_t parent
        while at > 0:
            parent = (at - 1) >> 2
            if not _before(&moving, &self.heap[parent]):
                break
            self.heap[at] = self.heap[parent]
            at = parent
        self.heap[at] = moving

    cdef void _sift_down(self, Py_ssize_t at) noexcept:
        cdef Deadline moving = self.heap[at]
        cdef Py_ssize_t first, child, best, end
        while True:
            first = (at << 2) + 1
            if first >= self.heap_count:
                break
            best = first
            end = min(first + 4, self.heap_count)
            for child in range(first + 1, end):
                if _before(&self.heap[child], &self.heap[best]):
                    best = child
            if not _before(&self.heap[best], &moving):
                break
            self.heap[at] = self.heap[best]
            at = best
        self.heap[at] = moving

    cdef void _sweep(self) noexcept:
        """Drop all cancelled ones: linear, and paid for by as many cancels."""
        cdef Py_ssize_t i
        cdef PyObject *dead = NULL
        cdef PyObject *handle
        self.line_end = self.line_first + _keep_alive(self.line + self.line_first, self.line_end - self.line_first,
                                                      &dead)
        self.heap_count = _keep_alive(self.heap, self.heap_count, &dead)
        for i in range(self.heap_count // 4, -1, -1):
            if i < self.heap_count:
                self._sift_down(i)
        self.count = self.line_end - self.line_first + self.heap_count
        self.cancelled = 0
        while dead is not NULL:
            # Only now: what a handle's context held may end here, and run code that schedules.
            handle = dead
            dead = (<TimerHandle> handle).next
            Py_DECREF(<object> handle)


cdef Py_ssize_t _keep_alive(Deadline *entries, Py_ssize_t count, PyObject **dead) noexcept:
    """Move those not cancelled to the front, in order, and chain the others up; how many stay."""
    cdef Py_ssize_t kept = 0, i
    for i in range(count):
        if (<TimerHandle> entries[i].handle)._cancelled:
            (<TimerHandle> entries[i].handle).next = dead[0]
            dead[0] = entries[i].handle
            continue
        entries[kept] = entries[i]
        kept += 1
    return kept


cdef traverseproc _traverse_fields = ur_get_traverse(Timers)


cdef int _traverse(PyObject *self, visitproc visit, void *arg) noexcept:
    cdef Timers timers = <Timers> self
    cdef Py_ssize_t i
    cdef int result
    for i in range(timers.line_first, timers.line_end):
        result = ur_visit_owned(timers.line[i].handle, visit, arg)
        if result:
            return result
    for i in range(timers.heap_count):
        result = ur_visit_owned(timers.heap[i].handle, visit, arg)
        if result:
            return result
    return _traverse_fields(self, visit, arg)


ur_set_traverse(Timers, <traverseproc> _traverse)
