# Application: the plain-text side of a TLS connection. Owns the application's protocol and the record of the calls it got.
# Passes plain text to the protocol, in the form that the protocol takes, while the protocol wants data. Knows nothing of
# the transport below.
from asyncio.log import logger

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject

from uringloop._core.engine.engine cimport SCRATCH_SIZE
from uringloop._core.loop.loop cimport Loop, may_fill
from uringloop._core.streams.feed cimport feed
from uringloop._core.tls.records cimport Records
from uringloop._core.transport.flow_control cimport tell_flow
from uringloop._core.transport.protocol_kind cimport PROTOCOL_BUFFERED, PROTOCOL_PLAIN, PROTOCOL_SINK, PROTOCOL_STREAM, kind_of
from uringloop._core.transport.transport cimport Sink

cdef extern from "Python.h":
    object PyObject_VectorcallMethod(object name, PyObject **args, size_t nargsf, PyObject *kwnames)
    size_t PY_VECTORCALL_ARGUMENTS_OFFSET


cdef inline object call(object protocol, str name, object arg):
    cdef PyObject *stack[3]
    stack[1] = <PyObject *> protocol
    stack[2] = <PyObject *> arg
    return PyObject_VectorcallMethod(name, &stack[1], 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL)


cdef class Application:
    def __cinit__(self, Loop loop, protocol, bint call_connection_made):
        self.loop = loop
        self.stage = STAGE_NEW if call_connection_made else STAGE_MADE
        self.set_protocol(protocol)

    cdef int set_protocol(self, object protocol) except -1:
        self.protocol, self.kind = protocol, kind_of(protocol)
        return 0

    cdef bint wants_data(self) noexcept:
        return not self.paused and not self.closed

    cdef int deliver(self, Records records) except -1:
        """Deliver all plain text. The protocol may pause, close or be replaced after every piece; its errors are raised."""
        cdef bytes data
        while self.wants_data() and not records.dry and not records.ended:
            if self.kind == PROTOCOL_BUFFERED:
                if not may_fill(self.loop, &self.called_turn, &self.called):
                    self.sated = True
                    break
                self._fill_buffers(records)
            elif self.kind == PROTOCOL_SINK:
                self._pass_on(records)
            else:
                data = records.read_all()
                if PyBytes_GET_SIZE(data) == 0:
                    pass
                elif self.kind == PROTOCOL_STREAM:
                    feed(self.protocol, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), data)
                else:
                    call(self.protocol, "data_received", data)
        return 0

    cdef int _pass_on(self, Records records) except -1:
        """Deliver what fits into the scratch memory to a receiver that keeps none of it."""
        cdef char *scratch = self.loop.engine.take_scratch()
        cdef Py_ssize_t count
        try:
            count = records.read_into(scratch, SCRATCH_SIZE)
            return (<Sink?> self.protocol).bytes_arrived(scratch, count) if count else 0
        finally:
            self.loop.engine.give_scratch(scratch)

    cdef int _fill_buffers(self, Records records) except -1:
        """Decrypt straight into a buffer of the protocol, until that is full or no plain text is left."""
        cdef Py_buffer view
        cdef Py_ssize_t got = 0, count = 1
        buffer = call(self.protocol, "get_buffer", records.waiting())
        if not self.wants_data():
            return 0
        PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)
        try:
            if view.len == 0:
                raise RuntimeError("get_buffer() returned an empty buffer")
            while got < view.len and count > 0:
                try:
                    count = records.read_into(<char *> view.buf + got, view.len - got)
                except Exception as error:
                    if got == 0:
                        raise
                    records.failure = error  # the plain text before it is valid
                    break
                got += count
        finally:
            PyBuffer_Release(&view)
            del buffer
        if got:
            call(self.protocol, "buffer_updated", got)
        return 0

    cdef int eof(self) except -1:
        """No more data follows: call eof_received, and raise its errors."""
        if self.stage == STAGE_MADE:
            self.stage = STAGE_EOF
            if self.protocol.eof_received():
                logger.warning("returning true from eof_received() has no effect when using ssl")
        return 0

    cdef int lost(self, object error, bint tell) except -1:
        """The connection is over: if there was one, call connection_lost in the next turn."""
        self.closed = True
        if tell and (self.stage == STAGE_MADE or self.stage == STAGE_EOF):
            self.stage = STAGE_LOST
            (<object> self.loop).call_soon(self.protocol.connection_lost, error)
        self.protocol = self.transport = None
        self.kind = PROTOCOL_PLAIN
        return 0

    cdef int tell_flow(self, object connection, bint pause) except -1:
        """Call pause_writing() or resume_writing(), unless that was the last call."""
        if self.writing_paused == pause or self.protocol is None:
            return 0
        self.writing_paused = pause
        return tell_flow(self.loop, self.protocol, pause, self.transport, connection)
