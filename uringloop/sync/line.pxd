from uringloop._core.waitlist cimport Waiter, Waitlist


cdef class Line(Waitlist):
    cdef object placed(self, Waiter waiter)
