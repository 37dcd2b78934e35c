from uringloop.sync.acquirable cimport Acquirable
from uringloop.sync.lock_claims cimport LockClaims


cdef class Lock(Acquirable):
    cdef bint held         # under the guard: stays true from holder to holder
    cdef LockClaims claims  # set once, under the guard, by the first Condition that shares it

    cdef object hold(self, object value)
