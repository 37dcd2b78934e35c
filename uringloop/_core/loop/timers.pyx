# Timers: the scheduled timers of a loop, by deadline. Owns one reference to each scheduled TimerHandle, until it is due or
# swept.
#
# Programs mostly schedule timers in the order of their deadlines: the same timeout again and again, or sleeps of one length.
# Such timers are kept in a line, a sorted array, where adding and taking cost the same however many there are. There are two
# lines, so that timers due soon can pass timers due late. A timer that fits at the end of neither goes into a heap.
# Cancelling is lazy: a cancelled handle stays, emptied, until it comes to the front, or until half of all are cancelled and
# all of these are swept at once. If it is the last one added, as in the usual "schedule, then cancel soon", it is removed
# immediately. Reads no clock, except for a timer whose time is not a number.
from cpython.object cimport PyObject, traverseproc, visitproc
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memmove

from uringloop._core.engine.ready_queue cimport ReadyQueue, ready_push_owned
from uringloop._core.kernel.abi cimport ur_now_ns
from uringloop._core.loop.handle cimport TimerHandle, TimerKeeper
from uringloop._core.lifetime.guard cimport ur_get_traverse, ur_set_traverse, ur_visit_contents, ur_visit_owned

cdef double ROUNDING = 2.0 ** -51  # four times the largest rounding error of a product

cdef enum:
    FEW = 64         # cancelled timers: sweeping fewer costs more than it frees
    SHORT_LINE = 64  # a line this short moves to the heap for a timer that fits no line; each entry moves at most once


cdef int64_t deadline_of(double when) noexcept:
    """The first nanosecond at which `time()` would not be before `when`. For NaN: now, so that the timer runs behind those
    that are due, as in asyncio's heap, where such an entry can't rise."""
    cdef double ns = when * 1e9
    cdef int64_t first
    if not -9.2e18 < ns < 9.2e18:
        return INT64_MAX if ns > 0 else INT64_MIN if ns < 0 else ur_now_ns()
    first = <int64_t> ns
    if <double> first < ns:
        first += 1
    # Usually the result is so far beyond the product that the product's rounding can't matter, and needs no division.
    if <double> first - ns > ns * ROUNDING:
        return first
    return first + 1 if <double> first / 1e9 < when else first


cdef inline bint _before(Deadline *a, Deadline *b) noexcept nogil:
    return a.when_ns < b.when_ns or (a.when_ns == b.when_ns and a.order < b.order)


cdef inline Deadline *_room(Deadline *entries, Py_ssize_t *size) except NULL:
    """Double the room."""
    cdef Py_ssize_t larger = size[0] * 2 if size[0] else 64
    entries = <Deadline *> realloc(entries, larger * sizeof(Deadline))
    if entries is NULL:
        raise MemoryError
    size[0] = larger
    return entries


cdef int _append(Line *line, Deadline *entry) except -1:
    cdef Py_ssize_t length = line.end - line.first
    if length == 0:
        line.first = line.end = 0
    elif line.end == line.size and line.first > length:
        memmove(line.entries, line.entries + line.first, length * sizeof(Deadline))
        line.first, line.end = 0, length
    if line.end == line.size:
        line.entries = _room(line.entries, &line.size)
    line.entries[line.end] = entry[0]
    line.end += 1
    return 0


cdef inline bint _is_first(Line *line, Deadline *entry) noexcept nogil:
    return line.first != line.end and entry == &line.entries[line.first]


cdef inline bint _is_last(Line *line, PyObject *handle) noexcept nogil:
    return line.first != line.end and line.entries[line.end - 1].handle == handle


cdef class Timers(TimerKeeper):
    def __del__(self):
        # The collector calls this before it clears the first object. A handle that a program has kept then refers to nothing,
        # so the program can't reach a cleared object through it.
        self.finalized = True
        self.clear()

    def __dealloc__(self):
        cdef int i
        self.clear()
        for i in range(LINES):
            free(self.lines[i].entries)
        free(self.heap)

    def __len__(self):
        return self.count - self.cancelled

    def __repr__(self):
        return f"<Timers {self.count - self.cancelled} scheduled, {self.cancelled} cancelled>"

    cdef int add(self, int64_t when_ns, TimerHandle handle) except -1:
        cdef Deadline entry
        cdef Line *line = self._line_for(when_ns)
        entry.when_ns = when_ns
        entry.order = self.scheduled
        entry.handle = <PyObject *> handle
        if line is NULL:
            self._to_heap(&entry)
        else:
            _append(line, &entry)
        self.scheduled += 1
        self.count += 1
        handle.keeper = <PyObject *> self
        Py_INCREF(handle)
        return 0

    cdef Line *_line_for(self, int64_t when_ns) except? NULL:
        """The line whose last deadline is closest before this one, or an empty line; NULL if the timer fits no line."""
        cdef Line *best = NULL
        cdef Line *shorter = &self.lines[0]
        cdef Line *line
        cdef int i
        for i in range(LINES):
            line = &self.lines[i]
            if line.end - line.first < shorter.end - shorter.first:
                shorter = line
            if line.first != line.end and when_ns >= line.entries[line.end - 1].when_ns and (
                    best is NULL or line.entries[line.end - 1].when_ns > best.entries[best.end - 1].when_ns):
                best = line
        if best is NULL and shorter.end - shorter.first <= SHORT_LINE:
            while shorter.first < shorter.end:
                self._to_heap(&shorter.entries[shorter.first])
                shorter.first += 1
            best = shorter
        return best

    cdef int _to_heap(self, Deadline *entry) except -1:
        if self.heap_count == self.heap_size:
            self.heap = _room(self.heap, &self.heap_size)
        self.heap[self.heap_count] = entry[0]
        self.heap_count += 1
        self._sift_up(self.heap_count - 1)
        return 0

    cdef void note_cancelled(self, TimerHandle handle) noexcept:
        """Called once by a handle, while it is scheduled here."""
        handle.keeper = NULL
        if _is_last(&self.lines[0], <PyObject *> handle):
            self.lines[0].end -= 1
        elif _is_last(&self.lines[1], <PyObject *> handle):
            self.lines[1].end -= 1
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
        """The timer that is due next; not called if there are none."""
        cdef Deadline *first = self.heap if self.heap_count else NULL
        cdef Line *line
        cdef int i
        for i in range(LINES):
            line = &self.lines[i]
            if line.first != line.end and (first is NULL or _before(&line.entries[line.first], first)):
                first = &line.entries[line.first]
        return first

    cdef PyObject *_pop(self, Deadline *first) noexcept:
        """Remove the timer that `_first` found, and pass its reference to the caller."""
        cdef PyObject *handle = first.handle
        self.count -= 1
        if first != self.heap:
            # It's not in the heap, so it's the first of a line.
            self.lines[0 if _is_first(&self.lines[0], first) else 1].first += 1
            return handle
        self.heap_count -= 1
        if self.heap_count:
            self.heap[0] = self.heap[self.heap_count]
            self._sift_down(0)
        return handle

    cdef int64_t next_deadline(self) noexcept:
        """When the loop has to wake; INT64_MAX without a timer."""
        cdef Deadline *first
        while self.count:
            first = self._first()
            if not (<TimerHandle> first.handle)._cancelled:
                return first.when_ns
            self.cancelled -= 1
            Py_DECREF(<object> self._pop(first))
        return INT64_MAX

    cdef void take_due(self, int64_t now_ns, ReadyQueue ready) noexcept:
        """Move the timers that are due into the ready queue, in order; never one before its time."""
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
        """Drop all cancelled timers. That takes linear time, which as many cancels have saved before."""
        cdef Py_ssize_t i
        cdef PyObject *dead = NULL
        cdef PyObject *handle
        cdef Line *line
        self.count = 0
        for i in range(LINES):
            line = &self.lines[i]
            line.end = line.first + _keep_alive(line.entries + line.first, line.end - line.first, &dead)
            self.count += line.end - line.first
        self.heap_count = _keep_alive(self.heap, self.heap_count, &dead)
        for i in range(self.heap_count // 4, -1, -1):
            if i < self.heap_count:
                self._sift_down(i)
        self.count += self.heap_count
        self.cancelled = 0
        while dead is not NULL:
            # Only now: freeing a handle's context may free other objects, and run code that schedules timers.
            handle = dead
            dead = (<TimerHandle> handle).next
            Py_DECREF(<object> handle)


cdef Py_ssize_t _keep_alive(Deadline *entries, Py_ssize_t count, PyObject **dead) noexcept:
    """Move the entries that are not cancelled to the front, in order, and link the others; return how many stay."""
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


cdef inline int _visit(Timers self, PyObject *handle, visitproc visit, void *arg) noexcept:
    """A coroutine that sleeps holds the handle, too, but only these timers run it, and `__del__` empties it in time. So until
    then the references that the handle holds count as the timers' own."""
    if self.finalized:
        return ur_visit_owned(handle, visit, arg)
    return ur_visit_contents(handle, visit, arg)


cdef int _traverse(PyObject *self, visitproc visit, void *arg) noexcept:
    cdef Timers timers = <Timers> self
    cdef Py_ssize_t i
    cdef int line, result
    for line in range(LINES):
        for i in range(timers.lines[line].first, timers.lines[line].end):
            result = _visit(timers, timers.lines[line].entries[i].handle, visit, arg)
            if result:
                return result
    for i in range(timers.heap_count):
        result = _visit(timers, timers.heap[i].handle, visit, arg)
        if result:
            return result
    return _traverse_fields(self, visit, arg)


ur_set_traverse(Timers, <traverseproc> _traverse)
