from uringloop._core.wait.waitlist cimport Waiter, Waitlist


cdef class ParkingLot(Waitlist):
    cdef bint waking       # under the guard, and False when that is free: the first in line is about to be woken

    cdef object append_waiter(self, Waiter waiter)
