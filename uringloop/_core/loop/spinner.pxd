from libc.stdint cimport int64_t

from uringloop._core.engine.engine cimport Engine
from uringloop._core.loop.inbox cimport Inbox


cdef class Spinner:
    # Only the loop's thread uses these fields, unless said otherwise.
    cdef int64_t busy_poll_ns      # how long the user allows to spin for I/O; 0: not at all
    cdef int io_credit             # > 0: lately, I/O came soon after the thread fell asleep
    cdef int wake_credit           # > 0: the same for calls of other threads
    cdef int64_t paused_at         # when the machine was last found crowded; 0: never
    cdef int64_t pause_ns          # for how long the thread doesn't spin after that
    cdef int spinning              # it is spinning; read by any thread
    cdef bint was_woken            # another thread ended the last sleep
    cdef readonly long spins       # the number of spins
    cdef readonly long hits        # spins that found something

    cdef int64_t window_ns(self) noexcept
    cdef bint spin(self, Engine engine, Inbox inbox, int64_t deadline_ns) except -1
    cdef void pause(self, int64_t since, int64_t now) noexcept
    cdef int64_t asleep(self) noexcept
    cdef void awake(self, int64_t since, bint woken) noexcept
