from uringloop._core.loop.loop cimport Loop


cdef int report(Loop loop, object error, str message, object transport, object protocol) except -1
cdef int report_fatal(Loop loop, object error, str message, object transport, object protocol, object logged) except -1
cdef long count_late_write(long before, str warning) except -1
