from uringloop._core.wait.waitlist cimport Waiter, Waitlist


cdef class ParkingLot(Waitlist):
    cdef object append_waiter(self, Waiter waiter)
