# Timers: the deadline heap. Owns one reference to each scheduled TimerHandle until it is due or swept.
# Cancelling is lazy: a cancelled handle stays, emptied, until it comes to the top or until half of the
# heap is such, when all of them go at once; one that happens to be last in the heap goes immediately,
# which is where the usual "schedule, then cancel soon" finds it. Reads no clock.
from cpython.object cimport PyObject, traverseproc, visitproc
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdlib cimport free, realloc

from uringloop._core.handle cimport TimerHandle, TimerKeeper
from uringloop._core.kernel cimport INT64_MAX, int64_t, uint64_t, ur_get_traverse, ur_set_traverse
from uringloop._core.ready cimport ReadyQueue, ready_push_owned

# Below this many cancelled ones a sweep costs more than it frees.
cdef Py_ssize_t FEW = 64


cdef inline bint _before(Deadline *a, Deadline *b) noexcept nogil:
    return a.when_ns < b.when_ns or (a.when_ns == b.when_ns and a.order < b.order)


cdef class Timers(TimerKeeper):
    def __dealloc__(self):
        self.clear()
        free(self.heap)

    def __len__(self):
        return self.count - self.cancelled

    def __repr__(self):
        return f"<Timers {self.count - self.cancelled} scheduled, {self.cancelled} cancelled>"

    cdef int add(self, int64_t when_ns, object handle) except -1:
        cdef Deadline *larger
        cdef Deadline *entry
        if self.count == self.size:
            self.size = self.size * 2 if self.size else 64
            larger = <Deadline *> realloc(self.heap, self.size * sizeof(Deadline))
            if larger is NULL:
                self.size = self.count
                raise MemoryError
            self.heap = larger
        (<TimerHandle> handle).keeper = self
        Py_INCREF(handle)
        entry = &self.heap[self.count]
        entry.when_ns = when_ns
        entry.order = self.scheduled
        entry.handle = <PyObject *> handle
        self.scheduled += 1
        self.count += 1
        self._sift_up(self.count - 1)
        return 0

    cdef void note_cancelled(self, TimerHandle handle) noexcept:
        """Called by the handle, once, while it is in the heap."""
        cdef PyObject *last = self.heap[self.count - 1].handle
        handle.keeper = None
        if last == <PyObject *> handle:
            self.count -= 1
            Py_DECREF(<object> last)
            return
        self.cancelled += 1
        if self.cancelled > FEW and self.cancelled * 2 > self.count:
            self._sweep()

    cdef int64_t next_deadline(self) noexcept:
        """When to wake; INT64_MAX without a timer."""
        while self.count and (<TimerHandle> self.heap[0].handle)._cancelled:
            self.cancelled -= 1
            self._pop()
        return self.heap[0].when_ns if self.count else INT64_MAX

    cdef void take_due(self, int64_t now_ns, ReadyQueue ready) noexcept:
        """Move those whose time has come into the ready queue, in order. Never one before its time."""
        cdef PyObject *handle
        while self.count and self.heap[0].when_ns <= now_ns:
            handle = self.heap[0].handle
            if (<TimerHandle> handle)._cancelled:
                self.cancelled -= 1
                self._pop()
                continue
            (<TimerHandle> handle).keeper = None
            Py_INCREF(<object> handle)
            self._pop()
            ready_push_owned(ready, handle)

    cdef void clear(self) noexcept:
        cdef PyObject *handle
        while self.count:
            self.count -= 1
            handle = self.heap[self.count].handle
            (<TimerHandle> handle).keeper = None
            Py_DECREF(<object> handle)
        self.cancelled = 0

    cdef void _pop(self) noexcept:
        cdef PyObject *handle = self.heap[0].handle
        self.count -= 1
        if self.count:
            self.heap[0] = self.heap[self.count]
            self._sift_down(0)
        Py_DECREF(<object> handle)

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
            if first >= self.count:
                break
            best = first
            end = min(first + 4, self.count)
            for child in range(first + 1, end):
                if _before(&self.heap[child], &self.heap[best]):
                    best = child
            if not _before(&self.heap[best], &moving):
                break
            self.heap[at] = self.heap[best]
            at = best
        self.heap[at] = moving

    cdef void _sweep(self) noexcept:
        """Drop all cancelled ones and make a heap of the rest: linear, and paid for by as many cancels."""
        cdef Py_ssize_t kept = 0, i
        cdef PyObject *handle
        for i in range(self.count):
            handle = self.heap[i].handle
            if (<TimerHandle> handle)._cancelled:
                Py_DECREF(<object> handle)  # emptied when it was cancelled: runs nothing
                continue
            self.heap[kept] = self.heap[i]
            kept += 1
        self.count = kept
        self.cancelled = 0
        for i in range(kept // 4, -1, -1):
            if i < kept:
                self._sift_down(i)


cdef traverseproc _traverse_fields = ur_get_traverse(Timers)


cdef int _traverse(PyObject *self, visitproc visit, void *arg) noexcept:
    cdef Timers timers = <Timers> self
    cdef Py_ssize_t i
    cdef int result
    for i in range(timers.count):
        result = visit(timers.heap[i].handle, arg)
        if result:
            return result
    return _traverse_fields(self, visit, arg)


ur_set_traverse(Timers, <traverseproc> _traverse)
