from uringloop._core.loop.loop cimport Loop
from uringloop._core.transport.protocol_kind cimport ProtocolKind
from uringloop._core.transport.recv cimport RecvOp
from uringloop._core.transport.send cimport SendOp
from uringloop._core.transport.transport cimport Transport


cdef bytes joined(object list_of_data)


cdef class StreamTransport(Transport):
    # The loop's thread only.
    cdef RecvOp recv
    cdef SendOp send             # made by the first write
    cdef ProtocolKind kind       # how the protocol takes data
    # No states of the transport, because each direction of a stream ends without the other:
    cdef readonly bint _paused   # pause_reading() was called
    cdef bint ended              # the peer has ended its side of the stream
    cdef readonly bint _eof      # write_eof() was called, which ends ours once the last byte is sent
    cdef long called_turn        # the turn that `called` belongs to
    cdef long called             # how many buffers of a BufferedProtocol were used in that turn
    cdef object empty_waiter     # a future that is done when the queue is empty (sendfile), or None
    cdef int error               # the error of shutdown() after the last byte, or 0

    cdef int start_reading(self) except -1
    cdef int begin_reading(self) except -1
    cdef int write_bytes(self, bytes data) except -1
    cdef bint may_call(self) noexcept
    cdef int send_failure(self) except -1
    cdef int receive_failure(self) except -1
    cdef int refuse_write(self, str name) except -1
    cdef int _hold_first(self, const char *data, Py_ssize_t length) except -1
    cdef bint _is_room(self, object buffer, Py_buffer *view) except -1
    cdef Py_ssize_t _receive_into_buffer(self) except? -32000
    cdef int _to_sink(self, const char *data, Py_ssize_t length) except -1
    cdef int _to_buffers(self, const char *data, Py_ssize_t length) except -1
    cdef void set_no_delay(self) noexcept


cdef StreamTransport accept_stream_transport(Loop loop, int fd, object protocol, object server, object cvars)
