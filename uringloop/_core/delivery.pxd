from uringloop._core.ready cimport Runnable

cdef bint deliver_foreign(Runnable node, object loop) except -1
