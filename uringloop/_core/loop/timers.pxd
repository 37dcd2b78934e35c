from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

from uringloop._core.engine.ready_queue cimport ReadyQueue
from uringloop._core.loop.handle cimport TimerHandle, TimerKeeper


cdef struct Deadline:
    int64_t when_ns
    uint64_t order       # the order of scheduling, in which equal deadlines run
    PyObject *handle     # a TimerHandle, one reference


cdef struct Line:
    Deadline *entries    # ascending: each was scheduled for no earlier than the one before it
    Py_ssize_t first
    Py_ssize_t end
    Py_ssize_t size


cdef enum:
    LINES = 2


cdef class Timers(TimerKeeper):
    # Only the loop's thread uses these fields.
    cdef Py_ssize_t count      # timers in the lines and in the heap
    cdef Py_ssize_t cancelled  # the cancelled ones among them
    cdef uint64_t scheduled    # timers ever scheduled
    cdef Line lines[LINES]
    cdef Deadline *heap        # all other timers; four children per node: half the levels, and siblings share cache lines
    cdef Py_ssize_t heap_count
    cdef Py_ssize_t heap_size
    cdef bint finalized        # __del__ was called

    cdef int add(self, int64_t when_ns, TimerHandle handle) except -1
    cdef int64_t next_deadline(self) noexcept
    cdef void take_due(self, int64_t now_ns, ReadyQueue ready) noexcept
    cdef void clear(self) noexcept
    cdef Deadline *_first(self) noexcept
    cdef PyObject *_pop(self, Deadline *first) noexcept
    cdef Line *_line_for(self, int64_t when_ns) except? NULL
    cdef int _to_heap(self, Deadline *entry) except -1
    cdef void _sift_up(self, Py_ssize_t at) noexcept
    cdef void _sift_down(self, Py_ssize_t at) noexcept
    cdef void _sweep(self) noexcept


cdef int64_t deadline_of(double when) noexcept
