# The C library's heap, once a process.
cdef int keep_heap() except -1
