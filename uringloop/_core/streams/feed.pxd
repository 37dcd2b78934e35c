cdef bint can_feed(object protocol) except -1
cdef int feed(object protocol, const char *data, Py_ssize_t length, bytes whole) except -1
