from uringloop._core.engine.ready cimport Runnable

cdef bint deliver_foreign(Runnable node, object loop) except -1
