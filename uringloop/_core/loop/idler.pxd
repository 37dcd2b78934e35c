from uringloop._core.engine.ready cimport Runnable


cdef class Idler(Runnable):
    cdef bint schedule_stealing(self) except -1
