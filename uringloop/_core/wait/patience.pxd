cdef double patience(object timeout) except? -2
