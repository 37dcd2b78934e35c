from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t

from uringloop._core.engine.op cimport Op, OpList, OpMonitor
from uringloop._core.engine.ready_queue cimport Runnable
from uringloop._core.lifetime.guard cimport ur_guard


cdef enum:
    MOST_SLOW = 10
    MOST_SAMPLES = 4096


cdef struct Record:
    uint8_t kind             # RecordKind
    int64_t start_ns
    int64_t took_ns
    int64_t number           # the number of the turn; or the operation's descriptor
    int64_t ran              # the number of callbacks run in the turn
    PyObject *name           # str, one reference each
    PyObject *detail         # str, or NULL


cdef class LoopMonitor(OpMonitor):
    # The loop's thread writes these, unless said otherwise. Other threads read them under the guard, single words without.
    cdef ur_guard guard
    cdef int flags                   # WatchFlags: what the observers want; any thread writes this and the next two
    cdef list slow_hooks             # (nanoseconds, callable)
    cdef int64_t hook_floor_ns       # the smallest of these nanoseconds
    cdef long begun                  # the number of callbacks begun
    cdef int64_t begun_ns            # when the running callback began; 0: none runs
    cdef PyObject *called            # the function that it calls, owned; NULL if that is not the user's
    cdef PyObject *kind              # the type of its Runnable, borrowed: types live as long as their module
    cdef int64_t asleep_ns           # when the thread fell asleep; 0: it is awake
    cdef int64_t slept_ns            # the total time of all finished sleeps
    cdef int64_t mark_ns             # when the current turn began: the end of the last turn, or of the sleep
    cdef Record slowest[MOST_SLOW]   # in no order
    cdef int slow_count
    cdef int64_t slow_floor_ns       # a callback has to take longer than this to be entered there
    cdef int64_t expiry_ns           # when the oldest of them is too old
    cdef float *samples              # durations of callbacks in seconds, evenly sampled since the last take_samples
    cdef int sample_count
    cdef long sample_stride          # one callback in so many is sampled
    cdef long sample_skip            # callbacks to skip before the next sample
    cdef Record *records             # the trace, a ring buffer; NULL while there is none
    cdef long record_room
    cdef long recorded               # records since the trace began; gives the place of the next one
    cdef dict in_kernel              # {address of op: (since or 0, kind, descriptor)}

    cdef int64_t begin(self, Runnable node, PyObject **called) noexcept
    cdef void end(self, Runnable node, PyObject *called, int64_t since) noexcept
    cdef void turn_ended(self, long turn, long ran) noexcept
    cdef void falls_asleep(self) noexcept
    cdef void wakes(self) noexcept
    cdef int monitor_ops(self, OpList ops) except -1
    cdef void _slow(self, Runnable node, PyObject *called, int64_t since, int64_t took) noexcept
    cdef void _keep_slow(self, object name, object detail, int64_t since, int64_t took) noexcept
    cdef void _set_floor(self) noexcept
    cdef void _forget_old(self, int64_t now) noexcept
    cdef void _sample(self, int64_t took) noexcept
    cdef void _record(self, uint8_t kind, int64_t start, int64_t took, int64_t number, int64_t ran, object name,
                      object detail) noexcept
