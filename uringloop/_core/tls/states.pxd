from uringloop._core.transport.transport cimport Sink


cdef enum TlsState:
    TLS_NEW         # the transport below is not connected yet
    TLS_HANDSHAKE
    TLS_OPEN        # application data flows both ways
    TLS_FLUSHING    # closing: data written before is sent first
    TLS_SHUTDOWN    # ... then our close_notify is sent, and the peer's awaited
    TLS_OVER        # failed, aborted, or lost


cdef class TlsStates(Sink):
    # The loop's thread only.
    cdef TlsState state

    cdef int start_handshake(self) except -1
    cdef int opened(self) except -1
    cdef int start_flushing(self) except -1
    cdef int start_shutdown(self) except -1
    cdef void ended(self) noexcept
    cdef int _step(self, TlsState before, TlsState after) except -1
    cdef str state_name(self)
