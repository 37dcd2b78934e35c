from uringloop.sync.acquirable cimport Acquirable


cdef class Semaphore(Acquirable):
    cdef Py_ssize_t value  # under the guard: 0 while a waiter is in line
    cdef Py_ssize_t bound  # never changes


cdef class BoundedSemaphore(Semaphore):
    pass
