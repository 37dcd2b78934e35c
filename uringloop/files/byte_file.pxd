from uringloop.files.async_file cimport AsyncFile
from uringloop.files.cursor cimport Cursor
from uringloop.files.descriptor cimport Descriptor
from uringloop.files.offset_transfers cimport OffsetTransfers
from uringloop.files.ops_in_flight cimport OpsInFlight
from uringloop.files.transfers cimport Transfers


cdef class ByteFile(AsyncFile):
    # Only the loop's thread uses these fields.
    cdef readonly Descriptor descriptor
    cdef readonly str mode
    cdef Cursor cursor                 # does what finishes at once
    cdef OpsInFlight ops               # the operations that the kernel works on
    cdef Transfers transfers           # do what has to wait: at the cursor,
    cdef OffsetTransfers at_offsets    # and at offsets that the caller gives
    cdef object closing                # the task that closes the file

    cdef object begin_reading(self, int kind, object first)
    cdef object begin_otherwise(self, int kind, object first, object second)
    cdef object wait(self, int kind, object first, object second)
    cdef object close_now(self)
