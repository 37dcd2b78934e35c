from uringloop._core.handoff.waitlist cimport Waiter, Waitlist


cdef class ParkingLot(Waitlist):
    cdef bint waking       # under the guard, False whenever that is free: `hand_on` has a wake for the first in line

    cdef object append_waiter(self, Waiter waiter)
