from uringloop._core.wait.waitlist cimport Waiter, Waitlist


cdef class Line(Waitlist):
    cdef object placed(self, Waiter waiter)
