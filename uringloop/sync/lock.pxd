from uringloop._core.wait cimport Entry
from uringloop._core.waitlist cimport Waitlist


cdef class Lock(Waitlist):
    cdef bint held         # under the guard: stays true from holder to holder
    cdef Entry entry       # never changes
