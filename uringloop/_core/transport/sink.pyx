# Sink: a compiled protocol. A transport hands it what arrived without a Python frame or a bytes object in between,
# in the transport's own context. The bytes are the transport's: gone once the call has returned, and free to be
# written over as soon as anything else is called.
from uringloop._core.engine.ready cimport Runnable


cdef class Sink(Runnable):
    cdef int bytes_arrived(self, const char *data, Py_ssize_t length) except -1:
        raise NotImplementedError
