from uringloop._core.engine.ready cimport Runnable


cdef class Idler(Runnable):
    cdef bint finds_work(self) except -1
