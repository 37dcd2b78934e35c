cdef int _restrict(int fd, operations, calls, int flags) except? -1
