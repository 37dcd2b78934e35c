from uringloop._core.engine.ready_queue cimport Runnable

cdef bint deliver_foreign(Runnable node, object loop) except -1
