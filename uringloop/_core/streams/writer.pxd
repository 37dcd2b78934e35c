from uringloop._core.awaitables.coroutine cimport Coroutine


cdef class Draining(Coroutine):
    # Only the loop's thread uses these fields.
    cdef object reader         # the StreamReader, or None
    cdef object protocol
    cdef object transport
    cdef bint in_line          # our future is among the protocol's _drain_waiters, and must be removed

    cdef object go_on(self)
    cdef int leave_line(self) except -1


cdef class Connected:
    # Replaces a server's client_connected_cb until that is called. Never changes.
    cdef object callback


cdef int adopt_writer_of(object protocol) except -1
