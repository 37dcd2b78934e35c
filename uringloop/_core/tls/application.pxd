from uringloop._core.loop.loop cimport Loop
from uringloop._core.tls.records cimport Records
from uringloop._core.transport.transport cimport Sink


cdef enum TlsStage:
    STAGE_NEW       # connection_made is still to be called
    STAGE_MADE
    STAGE_EOF       # eof_received was called
    STAGE_LOST      # connection_lost was called, or will be in the next turn


cdef class Application:
    # The loop's thread only.
    cdef Loop loop
    cdef readonly object protocol    # None once the connection is lost
    cdef readonly object transport   # the one it was given; None likewise
    cdef Sink sink                   # the protocol, where it is a compiled one; else None
    cdef bint buffered               # it is a BufferedProtocol
    cdef bint feeds                  # it is asyncio's own for streams: fed directly
    cdef TlsStage stage
    cdef long called_turn            # the turn that `called` is of
    cdef long called                 # how often a BufferedProtocol was offered a buffer in it
    cdef bint sated                  # called enough for this turn; what is left follows in the next
    cdef bint paused                 # pause_reading() was called
    cdef bint closed                 # close() or abort() was, or the connection ended: data is nobody's
    cdef bint writing_paused         # it was told to pause

    cdef int set_protocol(self, object protocol) except -1
    cdef bint wants_data(self) noexcept
    cdef int deliver(self, Records records) except -1
    cdef int _fill_buffers(self, Records records) except -1
    cdef int _pass_on(self, Records records) except -1
    cdef int eof(self) except -1
    cdef int lost(self, object error, bint tell) except -1
    cdef int tell_flow(self, object connection, bint pause) except -1
