from uringloop._core.loop.loop cimport Loop
from uringloop._core.tls.records cimport Records
from uringloop._core.transport.protocol_kind cimport ProtocolKind


cdef enum TlsStage:
    STAGE_NEW       # connection_made was not called yet
    STAGE_MADE
    STAGE_EOF       # eof_received was called
    STAGE_LOST      # connection_lost was called, or will be in the next turn


cdef class Application:
    # The loop's thread only.
    cdef Loop loop
    cdef readonly object protocol    # None once the connection is lost
    cdef readonly object transport   # the transport that the protocol got; None likewise
    cdef ProtocolKind kind           # how the protocol takes data
    cdef TlsStage stage
    cdef long called_turn            # the turn that `called` belongs to
    cdef long called                 # how many buffers of a BufferedProtocol were used in that turn
    cdef bint sated                  # it was called enough in this turn; the rest follows in the next
    cdef bint paused                 # pause_reading() was called
    cdef bint closed                 # close() or abort() was called, or the connection ended: data is dropped
    cdef bint writing_paused         # pause_writing() was called last

    cdef int set_protocol(self, object protocol) except -1
    cdef bint wants_data(self) noexcept
    cdef int deliver(self, Records records) except -1
    cdef int _fill_buffers(self, Records records) except -1
    cdef int _pass_on(self, Records records) except -1
    cdef int eof(self) except -1
    cdef int lost(self, object error, bint tell) except -1
    cdef int tell_flow(self, object connection, bint pause) except -1
