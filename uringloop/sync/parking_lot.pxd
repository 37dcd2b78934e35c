from uringloop._core.handoff.waitlist cimport Waiter, Waitlist


cdef class ParkingLot(Waitlist):
    cdef bint waking       # under the guard: `hand_on` has a wake for the first in line. False whenever the guard is free

    cdef object append_waiter(self, Waiter waiter)
