# Transport: the base class of all transports. Owns the descriptor, the protocol, the state (open, closing, lost, releasing,
# closed), and the water marks of writing. It closes the descriptor only when connection_lost was called and no operation
# is in the kernel any more. Sends and receives nothing itself.
import os
import socket
import sys
from asyncio import format_helpers, futures, transports, trsock

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject, PyTypeObject
from libc.string cimport memcpy, memset

from uringloop._core.cpython.context cimport context_enter, context_exit
from uringloop._core.engine.ready_queue cimport Runnable, ready_push
from uringloop._core.kernel.address cimport address_from_raw
from uringloop._core.kernel.libc cimport EINVAL, c_close, sockaddr, sockaddr_storage, socklen_t
from uringloop._core.loop.handle cimport make_handle
from uringloop._core.loop.loop cimport Loop
from uringloop._core.lifetime.counters cimport COUNT_TRANSPORT, count_freed, count_made
from uringloop._core.lifetime.guard cimport URINGLOOP_DEBUG, ur_abstract, ur_load_flag
from uringloop._core.lifetime.unclosed cimport warn_unclosed
from uringloop._core.transport.flow_control cimport bytes_within, tell_flow, water_marks
from uringloop._core.transport.reports cimport report, report_fatal

cdef extern from "<sys/socket.h>" nogil:
    int c_getpeername "getpeername"(int fd, sockaddr *addr, socklen_t *length)
    int c_getsockname "getsockname"(int fd, sockaddr *addr, socklen_t *length)

cdef extern from "Python.h":
    PyObject *PyObject_VectorcallMethod(PyObject *name, PyObject **args, size_t nargsf, PyObject *kwnames) noexcept
    size_t PY_VECTORCALL_ARGUMENTS_OFFSET

cdef extern from *:
    """
    static inline PyObject *ur_checked(PyObject *result) { return result; }
    """
    object checked "ur_checked"(PyObject *)  # a new reference, or what was raised

cdef extern from *:
    """
    static inline void ur_drop_attributes(PyObject *self) {
        PyObject **attributes = (PyObject **)((char *)self + Py_TYPE(self)->tp_dictoffset);
        Py_CLEAR(*attributes);
    }
    /* Cython's tp_clear leaves None where the interpreter expects a dict or nothing. */
    static inquiry ur_clear_fields;
    static int ur_clear(PyObject *self) {
        ur_drop_attributes(self);
        ur_clear_fields(self);
        ur_drop_attributes(self);
        return 0;
    }
    static void ur_mend_clear(void *type) {
        ur_clear_fields = ((PyTypeObject *)type)->tp_clear;
        ((PyTypeObject *)type)->tp_clear = ur_clear;
    }
    """
    void ur_drop_attributes(object self)
    void ur_mend_clear(void *type)

# The class itself: a test suite may replace socket.socket with a function.
cdef object _Socket = socket.socket

# From Python 3.13 on, a server keeps a set of its transports, before that a count.
cdef bint SERVER_KNOWS_CLIENTS = sys.version_info >= (3, 13)
cdef object is_finalizing = sys.is_finalizing  # a C variable: the last collection finds the module's globals cleared

cdef tuple _STATES = ("new", "open", "closing", "lost", "releasing", "closed")


cdef class Sink(Runnable):
    """A compiled protocol. A transport hands it what arrived without a Python frame or a bytes object in between, in the
    transport's own context. The bytes are the transport's: gone once the call has returned, and free to be written over
    as soon as anything else is called."""

    cdef int bytes_arrived(self, const char *data, Py_ssize_t length) except -1:
        raise NotImplementedError


class StreamInterface(transports._FlowControlMixin, transports.Transport):
    """The class that a stream transport's `__class__` shows."""


class DatagramInterface(transports._FlowControlMixin, transports.Transport, transports.DatagramTransport):
    """The class that a datagram transport's `__class__` shows: asyncio's own is a Transport, too."""


cdef object _address(bytes kept):
    cdef sockaddr_storage raw
    if not kept:
        return None
    memset(&raw, 0, sizeof(raw))
    memcpy(&raw, PyBytes_AS_STRING(kept), PyBytes_GET_SIZE(kept))
    return address_from_raw(&raw, <socklen_t> PyBytes_GET_SIZE(kept))


cdef class Transport:
    def __cinit__(self):
        ur_drop_attributes(self)  # Cython has just made the dict; the interpreter makes one when it's first needed
        self.fd = -1
        self.high = 64 * 1024
        self.low = 16 * 1024
        if URINGLOOP_DEBUG:
            count_made(COUNT_TRANSPORT)

    def __dealloc__(self):
        if URINGLOOP_DEBUG:
            count_freed(COUNT_TRANSPORT)

    def __del__(self):
        if self.fd >= 0:
            self._loop._transports.drop(self.fd, self)  # before any other code can run and find it
            try:
                warn_unclosed(self, f"unclosed transport {self!r}{self._where_made()}", 1)
            finally:  # also where the warning raises
                self.close_descriptor(self.state)
                if not is_finalizing():  # by then, the globals of asyncio that its server uses may be None
                    self._leave_server()

    def _where_made(self):
        """In debug mode: where it was made, for the warning that it was not closed."""
        if self.made_at is None:
            return ""
        return ", made at (most recent call last):\n" + "".join(self.made_at.format()).rstrip()

    # For isinstance(transport, asyncio.Transport): a compiled class cannot inherit from it.
    _interface = StreamInterface
    _marks = None  # (low, high), if they are not whole numbers of bytes

    @property
    def __class__(self):
        return self._interface

    cdef int begin(self, Loop loop, object protocol, int fd, object sock, dict extra, object server,
                   object cvars) except -1:
        """Take over the descriptor. If this raises, the caller still has to close it."""
        cdef sockaddr_storage raw
        cdef socklen_t length = sizeof(raw)
        self._loop = loop
        self.engine = loop.engine
        self.sock = sock
        self.extra = extra
        self.cvars = cvars
        self.peer = b""
        # Ask now, because it's not possible once the peer is gone. Keep it raw: it's short, and few programs need it.
        if c_getpeername(fd, <sockaddr *> &raw, &length) == 0:
            self.peer = PyBytes_FromStringAndSize(<char *> &raw, length)
        self.set_protocol(protocol)
        self._server = server
        if server is not None:
            if SERVER_KNOWS_CLIENTS:
                server._attach(self)
            else:
                server._attach()
        if loop._debug:
            self.made_at = format_helpers.extract_stack(sys._getframe(0))
        loop._transports.put(fd, self)
        self.opened(fd)
        if isinstance(sock, _Socket):
            # As socket.makefile() does: if a program closes the socket of its transport, the number must not become free,
            # or the next send would reach another file.
            sock._io_refs += 1
            self.holds_socket = True
        return 0

    cdef int introduce(self, object waiter) except -1:
        """In the next turn call connection_made, then start receiving, then wake the waiter, in the order of asyncio's own
        loop."""
        call_soon = (<object> self._loop).call_soon
        call_soon(self._protocol.connection_made, self, context=self.cvars)
        call_soon((<object> self)._start_reading, context=self.cvars)
        if waiter is not None:
            call_soon(futures._set_result_unless_cancelled, waiter, None, context=self.cvars)
        return 0

    def __repr__(self):
        state = "closed" if self.fd < 0 else "closing" if self.state >= TRANSPORT_CLOSING else "open"
        return f"<{type(self).__name__} {state} fd={self.fd} unsent={self.unsent()}>"

    # The transitions of its state; nothing else changes it

    cdef int opened(self, int fd) except -1:
        """new -> open: the descriptor is the transport's; from here on, `__del__` removes it from the table."""
        if URINGLOOP_DEBUG:
            assert self.state == TRANSPORT_NEW, f"a transport got a second descriptor: {self!r}"
        self.fd, self.state = fd, TRANSPORT_OPEN
        return 0

    cdef int start_closing(self) except -1:
        """open -> closing: the program closes it, and what was written before leaves first."""
        if URINGLOOP_DEBUG:
            assert self.state == TRANSPORT_OPEN, f"a transport that is not open begins to close: {self!r}"
        self.state = TRANSPORT_CLOSING
        self.waits_changed()
        return 0

    cdef int lose(self, object error) except -1:
        """open or closing -> lost: connection_lost follows in the next turn, never inside a call of the protocol. Without
        the memory to schedule it, the state stays."""
        if URINGLOOP_DEBUG:
            assert TRANSPORT_OPEN <= self.state <= TRANSPORT_CLOSING, f"a connection was lost twice: {self!r}"
        if not ur_load_flag(&self._loop.closed):
            ready_push(self._loop.ready, make_handle(self._call_connection_lost, (error,), self.cvars))
        self.state = TRANSPORT_LOST
        self.late_writes = 1
        self.waits_changed()
        return self._loop.check()

    cdef int start_releasing(self) except -1:
        """lost -> releasing: connection_lost is called now."""
        if URINGLOOP_DEBUG:
            assert self.state == TRANSPORT_LOST, f"connection_lost is called before the connection is lost: {self!r}"
        self.state = TRANSPORT_RELEASING
        return 0

    cdef int released(self) except -1:
        """releasing -> closed: no operation is in the kernel any more."""
        if URINGLOOP_DEBUG:
            assert self.state == TRANSPORT_RELEASING, f"a transport that is in use is closed: {self!r}"
        return self.close_descriptor(TRANSPORT_CLOSED)

    cdef int close_descriptor(self, uint8_t state) except -1:
        """The state is `state` from then on. The destructor keeps it: the program has not closed it, as TLS on it will say."""
        self._loop._transports.drop(self.fd, self)
        self.local = self.local_address()
        cdef int fd = self.fd
        self.fd, self.state = -1, state
        if self.sock is None:
            c_close(fd)
            return 0
        self.sock.close()
        if self.holds_socket:
            self.holds_socket = False
            self.sock._decref_socketios()
        return 0

    @property
    def _state_name(self):
        return _STATES[self.state]

    # The protocol

    def set_protocol(self, protocol):
        self._protocol = protocol

    def get_protocol(self):
        return self._protocol

    cdef object call(self, str name, object arg):
        """Call protocol.name(arg) in the transport's context."""
        cdef PyObject *stack[3]
        cdef PyObject *result
        cdef object protocol = self._protocol
        stack[1] = <PyObject *> protocol
        stack[2] = <PyObject *> arg
        context_enter(<PyObject *> self.cvars)
        result = PyObject_VectorcallMethod(<PyObject *> name, &stack[1], 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL)
        context_exit(<PyObject *> self.cvars)
        return checked(result)

    # Extra information

    def get_extra_info(self, name, default=None):
        if self.extra is not None and name in self.extra:
            return self.extra[name]
        if name == "socket":
            return self._cache_extra("socket", trsock.TransportSocket(self.make_socket() or self._closed_socket()))
        if name == "peername":
            return self._cache_extra("peername", self._peername())
        if name == "sockname":
            return self._cache_extra("sockname", self._sockname())
        return default

    def _cache_extra(self, name, value):
        if self.extra is None:
            self.extra = {}
        self.extra[name] = value
        return value

    def _peername(self):
        return _address(self.peer)

    def _sockname(self):
        return _address(self.local_address())

    cdef bytes local_address(self):
        """Our own raw address; b"" if there is none."""
        cdef sockaddr_storage raw
        cdef socklen_t length = sizeof(raw)
        if self.fd < 0:
            return self.local
        if c_getsockname(self.fd, <sockaddr *> &raw, &length) < 0:
            return b""
        return PyBytes_FromStringAndSize(<char *> &raw, length)

    def _closed_socket(self):
        """The socket of a closed transport, as asyncio shows it, if none was made while it was open."""
        cdef int family = (<sockaddr_storage *> PyBytes_AS_STRING(self.local)).ss_family if self.local else 0
        sock = _Socket(family or socket.AF_UNIX)
        sock.close()
        return sock

    cdef object make_socket(self):
        """Make the socket object of a descriptor that the core has accepted; None once closed."""
        if self.sock is None and self.fd >= 0:
            self.sock = _Socket(fileno=self.fd)
            self.sock.setblocking(False)
        return self.sock

    @property
    def _sock(self):
        return self.make_socket()

    @property
    def _extra(self):
        for name in ("socket", "peername", "sockname"):
            self.get_extra_info(name)
        return self.extra

    # Writing: for streams only, but asyncio's datagram transports have these methods, too

    def write(self, data):
        raise NotImplementedError

    def writelines(self, list_of_data):
        raise NotImplementedError

    def write_eof(self):
        raise NotImplementedError

    def can_write_eof(self):
        raise NotImplementedError

    # Flow control of writing

    def get_write_buffer_size(self):
        return self.unsent()

    def get_write_buffer_limits(self):
        return (self.low, self.high) if self._marks is None else self._marks

    def set_write_buffer_limits(self, high=None, low=None):
        marks = low, high = water_marks(high, low, 64 * 1024)
        self.low, self.high = bytes_within(low), bytes_within(high)
        if marks != (self.low, self.high) or self._marks is not None:
            (<object> self)._marks = marks  # not whole numbers: shown as they were given
        if self.unsent() > self.high:
            self.send_written()  # data that the socket doesn't take is a backlog
        if self.unsent() > self.high:
            self.pause_writer()

    @property
    def _protocol_paused(self):
        return self.writing_paused

    cdef int pause_writer(self) except -1:
        if self.writing_paused:
            return 0
        self.writing_paused = True
        self.waits_changed()
        return self.tell_flow(self._protocol, True)

    cdef int resume_writer(self) except -1:
        if not self.writing_paused or self.unsent() > self.low:
            return 0
        self.writing_paused = False
        self.waits_changed()
        return self.cvars.run(self._tell_resumed)

    def _tell_resumed(self):
        return self.tell_flow(self._protocol, False)

    cdef int tell_flow(self, object protocol, bint pause) except -1:
        return tell_flow(self._loop, protocol, pause, self, self._protocol)

    # The end

    def is_closing(self):
        return self.state >= TRANSPORT_CLOSING

    @property
    def _closing(self):  # asyncio's private name, which programs read
        return self.state >= TRANSPORT_CLOSING

    def close(self):
        """Stop receiving, send queued data, then call connection_lost."""
        if self.state >= TRANSPORT_CLOSING:
            return
        self.start_closing()
        self.stop_receiving()
        self.send_written()
        if self.state == TRANSPORT_CLOSING and self.unsent() == 0:
            self.lose(None)

    def abort(self):
        """Close at once, and drop queued data."""
        self.force_close(None)

    def _force_close(self, error):
        self.force_close(error)

    def _fatal_error(self, error, message="Fatal error on transport"):
        self.fatal(error, message)

    cdef int fatal(self, object error, str message) except -1:
        try:
            report_fatal(self._loop, error, message, self, self._protocol, self)
        finally:
            self.force_close(error)
        return 0

    def _report(self, error, message):
        report(self._loop, error, message, self, self._protocol)

    cdef int force_close(self, object error) except -1:
        cdef bint receiving = self.state < TRANSPORT_CLOSING
        if self.state >= TRANSPORT_LOST:
            return 0
        self.lose(error)  # first: it may fail for lack of memory, and then nothing has happened yet
        self.drop_unsent()
        if receiving:
            self.stop_receiving()
        return 0

    cdef int io_failed(self, int error, str message) except -1:
        """An operation of this transport completed with an error."""
        return self.fatal(OSError(error, os.strerror(error)), message)

    def _call_connection_lost(self, error):
        """Call connection_lost; runs in the transport's context."""
        if self.state >= TRANSPORT_RELEASING:
            return
        self.start_releasing()
        try:
            if self._protocol is not None:
                self._protocol.connection_lost(error)
        finally:
            self.writing_paused = False
            self._protocol = None
            self._leave_server()
            self.release()

    def _leave_server(self):
        server, self._server = self._server, None
        if server is not None:
            if SERVER_KNOWS_CLIENTS:
                server._detach(self)
            else:
                server._detach()

    cdef int release(self) except -1:
        """Close the descriptor after connection_lost, once no operation is in the kernel; called when either is so."""
        # Without a descriptor, the destructor has closed it, and the collector may have cleared the other fields.
        if self.state == TRANSPORT_RELEASING and self.fd >= 0 and self.idle():
            self.released()
        return 0

    # Implemented by the subclasses

    cdef int data_arrived(self, const char *data, Py_ssize_t length, bytes whole) except -1:
        """Deliver bytes. If `whole` is None, they lie in a receive buffer, which is given back when this returns; otherwise
        they are those of `whole`."""
        return 0

    cdef int eof_arrived(self) except -1:
        return 0

    cdef Py_ssize_t receive(self, Py_ssize_t expected) except? -32000:
        """Receive data straight into its destination and deliver it; return the size, 0 at the end of stream, or -errno."""
        return -EINVAL

    cdef bint wants_data(self) noexcept:
        return self.state < TRANSPORT_CLOSING

    cdef void waits_changed(self) noexcept:
        """Something waits for the end of a send from now on, or no longer: the state or `writing_paused` is another one."""

    cdef int sent(self) except -1:
        return 0

    cdef int send_written(self) except -1:
        """Send written data now, as much as the socket takes."""
        return 0

    cdef Py_ssize_t unsent(self) noexcept:
        return 0

    cdef void drop_unsent(self) noexcept:
        pass

    cdef int stop_receiving(self) except -1:
        return 0

    cdef bint idle(self) noexcept:
        """Whether no operation of this transport is in the kernel."""
        return True


ur_mend_clear(<PyTypeObject *> Transport)
ur_abstract(Transport)
