cdef double timeout_seconds(object timeout) except? -2
