from libc.stdint cimport int64_t

from uringloop.files.chunk cimport Borrowed
from uringloop.files.cursor cimport Cursor
from uringloop.files.descriptor cimport Descriptor
from uringloop.files.ops_in_flight cimport OpsInFlight


cdef enum:
    STEP_MOST = 1 << 20      # the most bytes per operation: the ring, too, copies cached data in the loop's thread

cdef bint kernel_may_fill(Descriptor descriptor, Borrowed lent, int64_t offset) noexcept


cdef class Transfers:
    cdef Cursor cursor
    cdef OpsInFlight ops


cdef Transfers make_transfers(Cursor cursor, OpsInFlight ops)
