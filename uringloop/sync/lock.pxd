from uringloop.sync.acquirable cimport Acquirable


cdef class Lock(Acquirable):
    cdef bint held         # under the guard: stays true from holder to holder
