from uringloop.sync.acquirable cimport Acquirable


cdef class Lock(Acquirable):
    cdef bint held         # under the guard: stays true from holder to holder
    cdef Py_ssize_t owed   # the same: releases that are to do nothing, for who lets go has not got it
