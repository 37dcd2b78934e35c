from uringloop.sync.acquirable cimport Acquirable


cdef class Semaphore(Acquirable):
    cdef Py_ssize_t value  # under the guard: 0 while somebody waits
    cdef Py_ssize_t bound  # never changes


cdef class BoundedSemaphore(Semaphore):
    pass
