from uringloop._core.loop.loop cimport Loop


cdef tuple water_marks(high, low, Py_ssize_t default)
cdef Py_ssize_t bytes_within(object mark) except -1
cdef Py_ssize_t bytes_reaching(object mark) except -1
cdef int tell_flow(Loop loop, object called, bint pause, object transport, object protocol) except -1
