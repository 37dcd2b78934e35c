from libc.stdint cimport int64_t

from uringloop.files.chunk cimport Borrowed
from uringloop.files.transfers cimport Transfers


cdef class Positional(Transfers):
    cdef object pread_now(self, object what, object where)
    cdef int64_t pread_at_once(self, char *data, Py_ssize_t size, int64_t offset) except? -1
