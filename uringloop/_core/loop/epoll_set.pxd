from libc.stdint cimport uint32_t

from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.op cimport Op
from uringloop._core.kernel.libc cimport epoll_event
from uringloop._core.loop.loop cimport Loop


cdef enum:
    EVENTS_A_TURN = 256


cdef class Registration:
    # One descriptor in the set. Only the loop's thread uses it.
    cdef readonly int fd
    cdef uint32_t slot             # its index in EpollSet.slots
    cdef uint32_t serial           # the registration's number: an event with another one is for a file that had the slot before
    cdef uint32_t events           # the events registered with the kernel
    cdef readonly object reader    # Handle, or None
    cdef readonly object writer


cdef class EpollSet(Op):
    # Only the loop's thread uses these fields.
    cdef Loop loop
    cdef Engine engine
    cdef readonly dict registrations  # descriptor -> Registration
    cdef list slots                # a Registration or None; the kernel's events refer to it by the index
    cdef list free_slots
    cdef uint32_t serial           # the last serial given to a registration
    cdef unsigned long forks       # engine.forks when the set was made: the set may be a parent's
    cdef bint uses_epoll_wait      # IORING_OP_EPOLL_WAIT fills `found`; otherwise `record_completion` calls epoll_wait
    cdef long attempted            # without a ring: the turn in which `found` was filled
    cdef bint awaits_turn_end      # it is queued for the end of the turn, where it will be submitted
    cdef bint stale                # the kernel reported a file whose descriptor is closed: the set has to be replaced
    cdef epoll_event found[EVENTS_A_TURN]

    cdef int dispatch_event(self, epoll_event *event) noexcept
    cdef int push(self, object handle) noexcept
    cdef int submit_at_turn_end(self) except -1
    cdef int enrol(self, Registration registration, uint32_t events) noexcept
    cdef int drop(self, Registration registration, uint32_t events) except -1
    cdef int renew(self) except -1
