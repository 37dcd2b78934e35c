from uringloop._core.engine.ready cimport Runnable


cdef class Sink(Runnable):
    cdef int bytes_arrived(self, const char *data, Py_ssize_t length) except -1
