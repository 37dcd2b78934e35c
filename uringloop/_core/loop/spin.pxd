from libc.stdint cimport int64_t

from uringloop._core.engine.engine cimport Engine
from uringloop._core.loop.inbox cimport Inbox


cdef class Spinner:
    # The loop's thread only, unless said otherwise.
    cdef int64_t busy_poll_ns      # what the user allows for I/O, 0: nothing
    cdef int io_credit             # > 0: I/O came soon after falling asleep, lately
    cdef int wake_credit           # > 0: the same of other threads' calls
    cdef int64_t paused_at         # when the machine was last found crowded, 0: never
    cdef int64_t pause_ns          # for how long nothing spins then
    cdef int spinning              # it spins just now; read by any thread
    cdef bint was_woken            # another thread ended the last sleep
    cdef readonly long spins       # ever begun
    cdef readonly long hits        # that something ended

    cdef int64_t window_ns(self) noexcept
    cdef bint spin(self, Engine engine, Inbox inbox, int64_t deadline_ns) except -1
    cdef void pause(self, int64_t since, int64_t now) noexcept
    cdef int64_t asleep(self) noexcept
    cdef void awake(self, int64_t since, bint woken) noexcept
