# StreamTransport: TCP and Unix stream connections, with asyncio's Transport interface. Owns one RecvOp and, from the first
# write on, one SendOp. It delivers arrived data to a Protocol or a BufferedProtocol, and decides when queued writes,
# half-closing and closing are done.
import _socket
import socket
from asyncio import base_events, constants
from asyncio.log import logger

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.string cimport memcpy

from uringloop._core.cpython.bytes_resize cimport _PyBytes_Resize
from uringloop._core.cpython.context cimport context_enter, context_exit
from uringloop._core.engine.engine cimport SCRATCH_SIZE
from uringloop._core.engine.op cimport OP_IDLE, OP_IN_KERNEL
from uringloop._core.kernel.libc cimport (
    AF_INET, AF_INET6, EAGAIN, EPIPE, MSG_DONTWAIT, SHUT_WR, c_recv, c_shutdown, errno,
)
from uringloop._core.loop.loop cimport Loop, may_fill, runs_here
from uringloop._core.lifetime.guard cimport ur_only_core_makes
from uringloop._core.streams.feed cimport feed
from uringloop._core.transport.protocol_kind cimport (
    PROTOCOL_BUFFERED, PROTOCOL_PLAIN, PROTOCOL_SINK, PROTOCOL_STREAM, kind_of,
)
from uringloop._core.transport.recv cimport RecvOp
from uringloop._core.transport.reports cimport count_late_write
from uringloop._core.transport.send cimport SEND_BACKLOG, SEND_QUEUED, SendOp
from uringloop._core.transport.transport cimport TRANSPORT_CLOSING, TRANSPORT_LOST, Sink, Transport

cdef extern from "<netinet/tcp.h>" nogil:
    int IPPROTO_TCP, SOCK_STREAM, TCP_NODELAY
    int setsockopt(int fd, int level, int name, const void *value, unsigned length)

cdef extern from *:
    """
    static inline PyObject *ur_steal(PyObject *owned) { return owned; }
    """
    object steal "ur_steal"(PyObject *owned)  # the reference becomes the result's
    PyObject *PyBytes_FromStringAndSize_raw "PyBytes_FromStringAndSize"(const char *, Py_ssize_t) except NULL

cdef enum:
    MOST_FED = 262144

cdef object _Socket = socket.socket
# Plain numbers: the properties of socket.socket look up enum members. Loops in several threads of a free-threaded Python
# wait for each other there, for the lock of all types and for references to the same members.
cdef object _family = _socket.socket.family.__get__
cdef object _type = _socket.socket.type.__get__
cdef object _proto = _socket.socket.proto.__get__
cdef tuple _INET = (AF_INET, AF_INET6)

cdef object _FATAL_WRITE = "Fatal write error on socket transport"


cdef bytes _copied(object data):
    """A copy of the data as bytes: of any type that asyncio accepts, also of a memoryview that is not contiguous."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"data argument must be a bytes-like object, not {type(data).__name__!r}")
    return bytes(data)


cdef bytes joined(object list_of_data):
    """Join the data into bytes, or raise the error of bytes.join()."""
    if not isinstance(list_of_data, (list, tuple)):
        try:
            list_of_data = list(list_of_data)
        except TypeError:
            pass  # join() raises the error
    try:
        return b"".join(list_of_data)
    except (TypeError, BufferError):
        try:
            return b"".join([bytes(memoryview(part)) for part in list_of_data])  # one was not contiguous
        except TypeError:
            pass
        raise


cdef class StreamTransport(Transport):
    _start_tls_compatible = True
    _sendfile_compatible = constants._SendfileMode.TRY_NATIVE

    def set_protocol(self, protocol):
        before = self._protocol
        self.kind = kind_of(protocol)
        Transport.set_protocol(self, protocol)
        if self.writing_paused and before is not None and before is not protocol:
            self._hand_over_pause(before)

    def _hand_over_pause(self, before):
        """The protocol changes while writing is paused: pause the new one, or TLS would write without end and be resumed
        without ever having been paused. Resume the old one, because no later call would."""
        try:
            self.tell_flow(before, False)
        finally:
            self.tell_flow(self._protocol, True)

    cdef int start_reading(self) except -1:
        """Start receiving, once connection_made was called."""
        if self.recv is None and self.fd >= 0:
            self.recv = RecvOp(self)
        if self.wants_data():
            self.recv.start()
        return 0

    def _start_reading(self):
        self.begin_reading()

    cdef int begin_reading(self) except -1:
        """Reading is impossible: end the connection, which would otherwise stay open in silence."""
        try:
            self.start_reading()
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self.fatal(error, "Fatal read error on socket transport")
        return 0

    # Reading

    cdef bint wants_data(self) noexcept:
        return self.state < TRANSPORT_CLOSING and not self._paused and not self.ended and not self.sated

    def is_reading(self):
        return self.state < TRANSPORT_CLOSING and not self._paused

    def pause_reading(self):
        if self.state >= TRANSPORT_CLOSING or self._paused:
            return
        self._paused = True
        if self.recv is not None:
            self.recv.stop()
        if self._loop._debug:
            logger.debug("%r pauses reading", self)

    def resume_reading(self):
        if self.state >= TRANSPORT_CLOSING or not self._paused:
            return
        self._paused = False
        self._loop.check()
        if self.recv is not None and not self.ended:
            self.recv.resume()
        if self._loop._debug:
            logger.debug("%r resumes reading", self)

    cdef int data_arrived(self, const char *data, Py_ssize_t length, bytes whole) except -1:
        if self.kind == PROTOCOL_BUFFERED:
            return self._to_buffers(data, length)
        if self.kind == PROTOCOL_PLAIN and whole is None:
            whole = PyBytes_FromStringAndSize(data, length)
        try:
            if self.kind == PROTOCOL_PLAIN:
                self.call("data_received", whole)
            elif self.kind == PROTOCOL_STREAM:
                feed(self._protocol, data, length, whole)
            else:
                self._to_sink(data, length)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            return self.fatal(error, "Fatal error: protocol.data_received() call failed.")
        return 0

    cdef Py_ssize_t receive(self, Py_ssize_t expected) except? -32000:
        cdef PyObject *data
        cdef ssize_t got
        cdef char *scratch
        if self.kind == PROTOCOL_SINK:
            scratch = self.engine.take_scratch()
            try:
                got = c_recv(self.fd, scratch, min(expected, <Py_ssize_t> SCRATCH_SIZE), MSG_DONTWAIT)
                if got < 0:
                    return -errno
                if got > 0:
                    self.data_arrived(scratch, got, None)
                return got
            finally:
                self.engine.give_scratch(scratch)
        if self.kind == PROTOCOL_BUFFERED:
            return self._receive_into_buffer()
        if self.kind == PROTOCOL_STREAM:
            expected = min(expected, <Py_ssize_t> MOST_FED)  # a full reader can pause us only after each piece
        data = PyBytes_FromStringAndSize_raw(NULL, expected)
        got = c_recv(self.fd, PyBytes_AS_STRING(<bytes> data), expected, MSG_DONTWAIT)
        if got <= 0:
            expected = -errno if got < 0 else 0
            Py_DECREF(<object> data)
            return expected
        if got < expected:
            _PyBytes_Resize(&data, got)
        received = <bytes> steal(data)
        self.data_arrived(PyBytes_AS_STRING(received), got, received)
        return got

    cdef int _to_sink(self, const char *data, Py_ssize_t length) except -1:
        context_enter(<PyObject *> self.cvars)
        try:
            (<Sink?> self._protocol).bytes_arrived(data, length)
        finally:
            context_exit(<PyObject *> self.cvars)
        return 0

    cdef bint _is_room(self, object buffer, Py_buffer *view) except -1:
        """Check the result of get_buffer(). If it isn't a buffer to receive into, end the connection with asyncio's error
        message."""
        try:
            PyObject_GetBuffer(buffer, view, PyBUF_WRITABLE)
        except (BufferError, TypeError):
            if len(buffer):
                self.fatal(TypeError("recv_into() argument 1 must be read-write bytes-like object, not "
                                     f"{type(buffer).__name__}"), "Fatal read error on socket transport")
                return False
        else:
            if view.len:
                return True
            PyBuffer_Release(view)
        raise RuntimeError("get_buffer() returned an empty buffer")

    cdef Py_ssize_t _receive_into_buffer(self) except? -32000:
        cdef Py_buffer view
        cdef ssize_t got
        cdef str failed = "Fatal error: protocol.get_buffer() call failed."
        try:
            buffer = self.call("get_buffer", -1)
            if not self._is_room(buffer, &view):
                return -EAGAIN
            got = c_recv(self.fd, view.buf, view.len, MSG_DONTWAIT)
            got = -errno if got < 0 else got
            PyBuffer_Release(&view)
            if got > 0:
                failed = "Fatal error: protocol.buffer_updated() call failed."
                self.call("buffer_updated", got)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self.fatal(error, failed)
            return -EAGAIN
        return got

    cdef int _to_buffers(self, const char *data, Py_ssize_t length) except -1:
        """Copy into the buffers of a BufferedProtocol, however small they are. In between, it may pause reading, close or
        be replaced: the rest is then kept, dropped, or delivered to the new protocol."""
        cdef Py_buffer view
        cdef Py_ssize_t count
        cdef str failed = "Fatal error: protocol.get_buffer() call failed."
        while length > 0:
            if self.kind != PROTOCOL_BUFFERED or not self.wants_data() or not self.may_call():
                break
            try:
                buffer = self.call("get_buffer", -1)
                if not self._is_room(buffer, &view):
                    return 0
                count = min(view.len, length)
                memcpy(view.buf, data, count)
                PyBuffer_Release(&view)
                del buffer
                failed = "Fatal error: protocol.buffer_updated() call failed."
                data += count
                length -= count
                self.call("buffer_updated", count)
                failed = "Fatal error: protocol.get_buffer() call failed."
            except (SystemExit, KeyboardInterrupt):
                self._hold_first(data, length)  # until the loop runs again
                raise
            except BaseException as error:
                return self.fatal(error, failed)
        if length > 0 and self.state < TRANSPORT_CLOSING:
            if self.wants_data():  # the protocol may be of another kind by now
                return self.data_arrived(data, length, None)
            self._hold_first(data, length)
        return 0

    cdef bint may_call(self) noexcept:
        """Whether this turn may use one more buffer."""
        if may_fill(self._loop, &self.called_turn, &self.called):
            return True
        self.sated = True
        return False

    cdef int _hold_first(self, const char *data, Py_ssize_t length) except -1:
        """Keep the data, in front of all other data that has arrived."""
        if length > 0 and self.state < TRANSPORT_CLOSING:
            if self.recv.undelivered is None:
                self.recv.undelivered = []
            self.recv.undelivered.insert(0, PyBytes_FromStringAndSize(data, length))
        return 0

    cdef int eof_arrived(self) except -1:
        cdef int failure = self.send_failure()
        if failure and failure != EPIPE:
            return self.io_failed(failure, _FATAL_WRITE)
        if self._loop._debug:
            logger.debug("%r received EOF", self)
        self.ended = True
        try:
            keep_open = self._call_plain("eof_received")
        except (SystemExit, KeyboardInterrupt):
            self.ended = False  # eof_received was interrupted: call it again when the loop runs again, as asyncio does
            raise
        except BaseException as error:
            return self.fatal(error, "Fatal error: protocol.eof_received() call failed.")
        if not keep_open:
            self.close()
        return 0

    def _call_plain(self, name):
        return self.cvars.run(getattr(self._protocol, name))

    cdef int stop_receiving(self) except -1:
        if self.recv is not None:
            self.recv.stop()
        return 0

    # Writing

    def write(self, data):
        """Send the data, at the end of this turn at the latest; what the socket doesn't take is queued. The caller may change
        the data afterwards."""
        if type(data) is not bytes:
            data = _copied(data)
        if self._eof or self.empty_waiter is not None:
            self.refuse_write("write")
        if PyBytes_GET_SIZE(data) == 0:
            return
        self.write_bytes(<bytes> data)

    def writelines(self, list_of_data):
        if self._eof or self.empty_waiter is not None:
            self.refuse_write("writelines")
        data = joined(list_of_data)
        if data:
            self.write_bytes(data)

    cdef int refuse_write(self, str name) except -1:
        if self._eof:
            raise RuntimeError(f"Cannot call {name}() after write_eof()")
        raise RuntimeError(f"unable to {name}; sendfile is in progress")

    cdef int write_bytes(self, bytes data) except -1:
        cdef int outcome
        if self.state >= TRANSPORT_LOST:
            self.late_writes = count_late_write(self.late_writes, "socket.send() raised exception.")
            return 0
        if self.send is None:
            self.send = SendOp(self)
            self.waits_changed()
        outcome = self.send.write(data, self.high)
        if outcome == SEND_QUEUED:
            return 0
        if outcome == SEND_BACKLOG:
            return self.pause_writer()
        return self.io_failed(-outcome, _FATAL_WRITE)

    def can_write_eof(self):
        return True

    def write_eof(self):
        if self.state >= TRANSPORT_CLOSING or self._eof:
            return
        self._eof = True
        self.waits_changed()
        if self.unsent() == 0:
            self._shut_down()

    def _shut_down(self):
        self.make_socket().shutdown(SHUT_WR)

    cdef int send_written(self) except -1:
        """Send now what asyncio's loop would have sent, so that a write() after close() is dropped in the same cases."""
        cdef int error
        if self.send is None or self.send.blocked:
            return 0
        error = self.send.try_now()
        return self.io_failed(-error, _FATAL_WRITE) if error < 0 else 0

    cdef Py_ssize_t unsent(self) noexcept:
        return 0 if self.send is None else self.send.size

    cdef void drop_unsent(self) noexcept:
        if self.send is not None:
            self.send.drop()

    cdef void waits_changed(self) noexcept:
        if self.send is not None:
            self.send.must_tell = (self.state >= TRANSPORT_CLOSING or self.writing_paused or self._eof
                                   or self.empty_waiter is not None)

    cdef int sent(self) except -1:
        """After a send: resume the writer, or do what waited for the queue to become empty."""
        self.resume_writer()  # the protocol may write again in it
        if self.send.size or self.state >= TRANSPORT_LOST:
            # The gathered data is a backlog after all.
            return self.pause_writer() if self.send.size > self.high and self.state < TRANSPORT_CLOSING else 0
        if self.empty_waiter is not None and not self.empty_waiter.done():
            self.empty_waiter.set_result(None)
        if self.state == TRANSPORT_CLOSING:
            self.lose(None)
        elif self._eof:
            c_shutdown(self.fd, SHUT_WR)
        return 0

    cdef void set_no_delay(self) noexcept:
        """Set TCP_NODELAY, so that small writes go out at once. Other sockets refuse it, which does no harm."""
        cdef int one = 1
        setsockopt(self.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one))

    # Sendfile uses the descriptor while the transport sends nothing

    def _make_empty_waiter(self):
        if self.empty_waiter is not None:
            raise RuntimeError("Empty waiter is already set")
        self.empty_waiter = (<object> self._loop).create_future()
        self.waits_changed()
        if self.unsent() == 0:
            self.empty_waiter.set_result(None)
        return self.empty_waiter

    def _reset_empty_waiter(self):
        self.empty_waiter = None
        self.waits_changed()

    @property
    def _empty_waiter(self):
        return self.empty_waiter

    # The end

    # The kernel reports a reset only once, to the first send or receive. The other then sees only that the connection has
    # ended: EPIPE, or the end of the stream. So each checks which error the other got.

    cdef int send_failure(self) except -1:
        if self.send is None:
            return 0
        if self.send.state == OP_IN_KERNEL and runs_here(self._loop):
            self.engine.reap()
        return self.send.failure()

    cdef int receive_failure(self) except -1:
        if self.recv is None:
            return 0
        if self.recv.state == OP_IN_KERNEL and runs_here(self._loop):
            self.engine.reap()
        return self.recv.failure()

    cdef int io_failed(self, int error, str message) except -1:
        if error == EPIPE:
            error = self.receive_failure() or EPIPE
        Transport.io_failed(self, error, message)
        if self.empty_waiter is not None and not self.empty_waiter.done():
            self.empty_waiter.set_exception(OSError(error, message))
        return 0

    cdef int force_close(self, object error) except -1:
        if self.send is not None and self.state < TRANSPORT_LOST:
            if self.send.state == OP_IN_KERNEL:
                self.engine.cancel(self.send)
            elif error is None and not self.send.blocked:
                self.send.try_now()  # asyncio's own loop would have sent the writes of this turn by now
        return Transport.force_close(self, error)

    def _call_connection_lost(self, error):
        try:
            Transport._call_connection_lost(self, error)
        finally:
            self.kind = PROTOCOL_PLAIN
            if self.empty_waiter is not None and not self.empty_waiter.done():
                self.empty_waiter.set_exception(ConnectionError("Connection is closed by peer"))

    cdef bint idle(self) noexcept:
        return (self.recv is None or self.recv.state == OP_IDLE) and (self.send is None or self.send.state == OP_IDLE)

    cdef int release(self) except -1:
        Transport.release(self)
        if self.fd < 0:
            # Break the cycle between the operations and the transport.
            if self.recv is not None:
                self.recv.transport = None
            if self.send is not None:
                self.send.transport = None
        return 0


def make_stream_transport(Loop loop, sock, protocol, waiter, extra, server, cvars):
    """Make a transport on a connected socket, which the transport owns from now on."""
    cdef StreamTransport transport = StreamTransport.__new__(StreamTransport)
    if type(sock) is not _Socket:
        base_events._set_nodelay(sock)
    transport.begin(loop, protocol, sock.fileno(), sock, extra, server, cvars)
    if type(sock) is _Socket and _family(sock) in _INET and _type(sock) == SOCK_STREAM and _proto(sock) == IPPROTO_TCP:
        transport.set_no_delay()
    transport.introduce(waiter)
    return transport


cdef StreamTransport accept_stream_transport(Loop loop, int fd, object protocol, object server, object cvars):
    """Make a transport on an accepted descriptor, which the transport owns unless this raises. The caller then calls
    connection_made and starts reading."""
    cdef StreamTransport transport = StreamTransport.__new__(StreamTransport)
    transport.begin(loop, protocol, fd, None, None, server, cvars)
    transport.set_no_delay()
    return transport
ur_only_core_makes(StreamTransport)
