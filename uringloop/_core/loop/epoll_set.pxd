from libc.stdint cimport uint32_t

from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.op cimport Op
from uringloop._core.kernel.libc cimport epoll_event
from uringloop._core.loop.loop cimport Loop


cdef enum:
    EVENTS_A_TURN = 256


cdef class Registration:
    # One descriptor of the set. The loop's thread only.
    cdef readonly int fd
    cdef uint32_t slot             # where EpollSet.slots has it
    cdef uint32_t serial           # of its registration: an event that names another is of a file that had the number before
    cdef uint32_t events           # what the kernel was asked for
    cdef readonly object reader    # Handle, or None
    cdef readonly object writer


cdef class EpollSet(Op):
    # The loop's thread only.
    cdef Loop loop
    cdef Engine engine
    cdef readonly dict registrations  # descriptor -> Registration
    cdef list slots                # what the kernel's events name by its place: a Registration, or None
    cdef list free_slots
    cdef uint32_t serial           # the last one given
    cdef unsigned long forks       # how many forks this process had come from when the set was made
    cdef bint uses_epoll_wait      # IORING_OP_EPOLL_WAIT fills `found`; otherwise `record_completion` calls epoll_wait
    cdef long attempted            # where there is no ring: the turn in which `found` was filled
    cdef bint awaits_turn_end      # queued for the end of the turn, to be submitted there
    cdef bint stale                # the kernel told of a file whose descriptor is closed: make the set anew
    cdef epoll_event found[EVENTS_A_TURN]

    cdef int dispatch_event(self, epoll_event *event) noexcept
    cdef int push(self, object handle) noexcept
    cdef int submit_at_turn_end(self) except -1
    cdef int enrol(self, Registration registration, uint32_t events) noexcept
    cdef int drop(self, Registration registration, uint32_t events) except -1
    cdef int renew(self) except -1
