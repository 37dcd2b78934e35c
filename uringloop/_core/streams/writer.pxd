from uringloop._core.awaitables.coroutine cimport Coroutine


cdef class Draining(Coroutine):
    # The loop's thread only.
    cdef object reader         # the StreamReader, or None
    cdef object protocol
    cdef object transport
    cdef bint in_line          # our future is one of the protocol's, to be removed

    cdef object go_on(self)
    cdef int leave_line(self) except -1


cdef class Connected:
    # In the place of a server's client_connected_cb until it is called. Never changes.
    cdef object callback


cdef int adopt_writer_of(object protocol) except -1
