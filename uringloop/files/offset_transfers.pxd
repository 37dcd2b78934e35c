from libc.stdint cimport int64_t

from uringloop.files.cursor cimport Cursor
from uringloop.files.ops_in_flight cimport OpsInFlight


cdef class OffsetTransfers:
    cdef Cursor cursor
    cdef OpsInFlight ops

    cdef object read_now(self, object what, object where)
    cdef int64_t read_at_once(self, char *data, Py_ssize_t size, int64_t offset) except? -1


cdef OffsetTransfers make_offset_transfers(Cursor cursor, OpsInFlight ops)
