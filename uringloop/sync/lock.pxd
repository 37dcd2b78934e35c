from uringloop.sync.acquirable cimport Acquirable
from uringloop.sync.claims cimport Claims


cdef class Lock(Acquirable):
    cdef bint held         # under the guard: stays true from holder to holder
    cdef Claims claims     # set once, under the guard, by the first Condition that shares it

    cdef object hold(self, object value)
