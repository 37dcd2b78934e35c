# TlsConnection: one TLS connection, the protocol of a transport below and the transport of an application above. Owns the
# timers of handshake and shutdown, and decides on the state. It does what asyncio's SSLProtocol does, but without a
# Python frame in the path of the data: ciphertext comes from a compiled transport through `bytes_arrived`, plain text goes
# on through an Application. The transport below may be of any other kind, such as another TLS transport.
#
# Data written in one turn is encrypted together at the end of the turn, and so leaves in one send. Data written while
# arrived data is delivered is encrypted right after that, and a large amount at once.
import contextvars
from asyncio import constants, exceptions, protocols, sslproto
from asyncio.log import logger

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject

from uringloop._core.cpython.context cimport context_enter, context_exit
from uringloop._core.engine.ready_queue cimport ready_push
from uringloop._core.loop.loop cimport Loop, sends_at_once
from uringloop._core.tls.application cimport STAGE_MADE, STAGE_NEW, Application
from uringloop._core.tls.backlog cimport Backlog
from uringloop._core.tls.direct_records cimport records_of
from uringloop._core.tls.records cimport Records
from uringloop._core.tls.states cimport TLS_FLUSHING, TLS_HANDSHAKE, TLS_NEW, TLS_OPEN, TLS_OVER, TLS_SHUTDOWN
from uringloop._core.tls.states cimport TlsStates
from uringloop._core.transport.flow_control cimport bytes_reaching, bytes_within, water_marks
from uringloop._core.transport.reports cimport count_late_write, report_fatal
from uringloop._core.transport.stream cimport StreamTransport

cdef enum:
    ENCRYPT_FROM = 65536  # from this size on, don't wait for the end of the turn

cdef object ssl = sslproto.ssl
cdef tuple _NOT_NOW = (ssl.SSLWantReadError, ssl.SSLSyscallError) if ssl is not None else ()


cdef class TlsConnection(TlsStates):
    def __cinit__(self, Loop loop, protocol, context, waiter, bint server_side, server_hostname,
                  bint call_connection_made, handshake_timeout, shutdown_timeout):
        self.handshake_timeout, self.shutdown_timeout = handshake_timeout, shutdown_timeout
        self.loop, self.waiter, self.extra = loop, waiter, {"sslcontext": context}
        self.records = records_of(context, server_side, None if server_side else server_hostname or None)
        self.application = Application(loop, protocol, call_connection_made)
        self.backlog = Backlog()
        self.set_write_limits()
        self.set_read_limits()

    # For isinstance: a compiled class cannot inherit from asyncio's protocols.
    @property
    def __class__(self):
        return protocols.Protocol

    def __repr__(self):
        return f"<TlsConnection {self.state_name()} queued={self.backlog.size} on {self.raw!r}>"

    # Names of asyncio's SSLProtocol, which programs use

    @property
    def _transport(self):
        return None if self.state == TLS_OVER else self.raw

    @property
    def _app_transport(self):
        return self.application.transport

    @property
    def _app_protocol(self):
        return self.application.protocol

    @property
    def _app_reading_paused(self):
        return self.application.paused

    @property
    def _sslobj(self):
        return self.records.tls

    @property
    def _sslcontext(self):
        return self.extra.get("sslcontext")

    @property
    def _extra(self):
        return self.extra

    def get_extra_info(self, name, default=None):
        if name in self.extra:
            return self.extra[name]
        return default if self.raw is None else self.raw.get_extra_info(name, default)

    # From the transport below

    def connection_made(self, transport):
        self.raw = transport
        if isinstance(transport, StreamTransport):
            self.stream = transport
            self.cvars = self.stream.cvars
        else:
            self.cvars = getattr(transport, "_cvars", None) or contextvars.copy_context()
        if self.state != TLS_NEW:  # closed before it began
            self.cut(None)
            return
        self.raw_paused = self.raw_paused or bool(getattr(transport, "_protocol_paused", False))
        self.start_handshake()
        call_later = (<object> self.loop).call_later
        if self.loop._debug:
            logger.debug("%r starts SSL handshake", self)
            self.started = (<object> self.loop).time()
        self.handshake_timer = call_later(self.handshake_timeout, self._handshake_late)
        self.hand_shake()

    def data_received(self, data):
        """Called by a transport that is not compiled."""
        cdef bytes copied = bytes(data)
        self.bytes_arrived(PyBytes_AS_STRING(copied), PyBytes_GET_SIZE(copied))

    cdef int bytes_arrived(self, const char *data, Py_ssize_t length) except -1:
        if self.state == TLS_OVER:
            return 0
        self.records.feed(data, length)
        try:
            return self.advance()
        finally:
            self.records.keep()

    def take_over(self, data):
        """Take ciphertext that other code has read before the connection begins."""
        self.data_received(data)

    cdef int advance(self) except -1:
        """Process ciphertext that has arrived."""
        if self.state == TLS_OPEN:
            return self.read()
        if self.state == TLS_HANDSHAKE:
            return self.hand_shake()
        if self.state == TLS_FLUSHING:
            return self.finish_flushing()
        if self.state == TLS_SHUTDOWN:
            return self.shut_down()
        return 0

    def eof_received(self):
        """Return whether the transport below stays open, which it does while data is left for a paused reader."""
        self.raw_ended = True
        if self.loop._debug:
            logger.debug("%r received EOF", self)
        if self.state == TLS_HANDSHAKE:
            self.handshake_failed(ConnectionResetError())
        elif self.state == TLS_OPEN:
            self.read()
            return self.state == TLS_OPEN
        elif self.state == TLS_FLUSHING or self.state == TLS_SHUTDOWN:
            self.encrypt(True)
            if self.state == TLS_FLUSHING:
                self.start_shutdown()
            self.shut_down()
        return False

    def pause_writing(self):
        self.raw_paused = True

    def resume_writing(self):
        self.raw_paused = False
        if self.state == TLS_OPEN:
            self.flush()

    def connection_lost(self, error):
        tell = self.state != TLS_HANDSHAKE
        self.ended()
        self.late_writes += 1
        self.backlog.clear()
        self.application.lost(error, tell)
        self.wake_waiter(error)
        for timer in (self.handshake_timer, self.shutdown_timer):
            if timer is not None:
                timer.cancel()
        self.handshake_timer = self.shutdown_timer = None
        self.stream = None
        if self.done_with:
            self.forget()

    cdef int forget(self) except -1:
        """Closed twice: drop what get_extra_info returns, as asyncio does, so that the transport keeps no SSLContext."""
        self.done_with = True
        if self.state == TLS_OVER and self.application.protocol is None:
            self.extra.clear()
            self.records.close()
        return 0

    # The handshake

    cdef int hand_shake(self) except -1:
        try:
            self.records.tls.do_handshake()
        except _NOT_NOW:
            return self.push_out(0)
        except ssl.SSLError as error:
            return self.handshake_failed(error)
        return self.handshake_done()

    def _handshake_late(self):
        if self.state == TLS_HANDSHAKE:
            self.fatal(ConnectionAbortedError(
                f"SSL handshake is taking longer than {self.handshake_timeout} seconds: "
                f"aborting the connection"), "Fatal error on transport")

    cdef int handshake_failed(self, object error) except -1:
        self.stop_handshake_timer()
        self.ended()
        what = " on verifying the certificate" if isinstance(error, ssl.CertificateError) else ""
        self.fatal(error, f"SSL handshake failed{what}")
        return self.wake_waiter(error)

    cdef int handshake_done(self) except -1:
        tls = self.records.tls
        try:
            peercert = tls.getpeercert()
        except Exception as error:
            return self.handshake_failed(error)
        self.stop_handshake_timer()
        self.opened()
        if self.loop._debug:
            logger.debug("%r: SSL handshake took %.1f ms", self, ((<object> self.loop).time() - self.started) * 1e3)
        self.extra.update(peercert=peercert, cipher=tls.cipher(), compression=tls.compression(), ssl_object=tls)
        try:
            if self.application.stage == STAGE_NEW:
                self.application.stage = STAGE_MADE
                self.application.protocol.connection_made(self.application.transport)
        except (SystemExit, KeyboardInterrupt):
            (<object> self.loop).call_soon(self._go_on, context=self.cvars)  # process the data when the loop runs again
            self.wake_waiter(None)
            raise
        self.wake_waiter(None)
        # Deliver data that came with the end of the handshake, and send what the peer waits for.
        return self.read() if self.state == TLS_OPEN else 0

    def stop_handshake_timer(self):
        if self.handshake_timer is not None:
            self.handshake_timer.cancel()
            self.handshake_timer = None

    cdef int wake_waiter(self, object error) except -1:
        waiter, self.waiter = self.waiter, None
        if waiter is not None and not waiter.done():
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)
        return 0

    # Reading

    cdef int read(self) except -1:
        """Deliver the plain text, then encrypt what was written meanwhile."""
        try:
            self.deliver()
            if self.state == TLS_OPEN:
                self.encrypt(False)
                self.control_writing()
                self.control_raw_reading()
        except (SystemExit, KeyboardInterrupt):
            (<object> self.loop).call_soon(self._go_on, context=self.cvars)  # deliver the rest when the loop runs again
            raise
        except BaseException as error:
            return self.fatal(error, "Fatal error on SSL protocol")
        return 0

    cdef int deliver(self) except -1:
        cdef Application application = self.application
        if application.sated:
            return 0
        application.deliver(self.records)
        if application.sated:
            (<object> self.loop).call_soon(self._go_on, context=self.cvars)
        elif self.state == TLS_OPEN and application.wants_data() and (self.raw_ended or self.records.ended):
            self.tell_eof()
            if self.state == TLS_OPEN:
                self.close()
        return 0

    cdef int tell_eof(self) except -1:
        try:
            self.application.eof()
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self.fatal(error, "Error calling eof_received()")
        return 0

    def _go_on(self):
        """Continue after reading was resumed or interrupted, or in the next turn after enough for one."""
        self.application.sated = False
        if self.state == TLS_OPEN:
            self.read()

    cdef int pause_reading(self) except -1:
        self.application.paused = True
        return 0

    def resume_reading(self):
        if self.application.paused:
            self.application.paused = False
            (<object> self.loop).call_soon(self._go_on, context=self.cvars)

    cdef int control_raw_reading(self) except -1:
        """While the application has paused reading, accept ciphertext only up to a limit."""
        cdef Py_ssize_t size
        if not self.application.paused and not self.application.sated and not self.raw_reading_paused:
            return 0
        size = self.records.waiting()
        if size >= self.read_high and not self.raw_reading_paused:
            self.raw_reading_paused = True
            self.raw.pause_reading()
        elif size <= self.read_low and self.raw_reading_paused:
            self.raw_reading_paused = False
            self.raw.resume_reading()
        return 0

    def set_read_limits(self, high=None, low=None):
        self.read_marks = water_marks(high, low, constants.FLOW_CONTROL_HIGH_WATER_SSL_READ * 1024)
        self.read_low, self.read_high = bytes_within(self.read_marks[0]), bytes_reaching(self.read_marks[1])
        if self.state == TLS_OPEN:
            self.control_raw_reading()

    # Writing

    cdef int write(self, bytes data) except -1:
        """Queue the data, to be sent at the end of this turn at the latest."""
        if self.state != TLS_OPEN and self.state != TLS_HANDSHAKE:
            self.late_writes = count_late_write(self.late_writes, "SSL connection is closed")
            return 0
        self.backlog.append(data)
        if self.state != TLS_OPEN:
            return 0
        if self.backlog.size >= ENCRYPT_FROM or self.backlog.size >= self.high or sends_at_once(
            self.loop, self.backlog.size > PyBytes_GET_SIZE(data)
        ):
            self.flush()
        elif not self.queued:
            ready_push(self.loop.turn_end_queue, self)
        return 0

    cdef int run(self, object loop) except -1:
        """The turn ends: encrypt what was written. Data written while data was delivered is already sent."""
        if self.state != TLS_OPEN or self.backlog.size == 0:
            return 0
        context_enter(<PyObject *> self.cvars)
        try:
            self.flush()
        finally:
            context_exit(<PyObject *> self.cvars)
        return 0

    cdef bint forking(self) noexcept:
        """Encrypt before a fork: records are numbered, and the peer refuses a number that two processes have used."""
        cdef Py_ssize_t size = self.backlog.size
        if self.state == TLS_OPEN:
            try:
                self.encrypt(False)
            except Exception as error:
                self.fatal(error, "Fatal error on SSL protocol")
        return self.backlog.size < size

    cdef int flush(self) except -1:
        """Encrypt what the transport below is ready to take, and pause or resume the writer."""
        try:
            self.encrypt(False)
            self.control_writing()
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            return self.fatal(error, "Fatal error on SSL protocol")
        return 0

    cdef int encrypt(self, bint everything) except -1:
        """Encrypt the backlog; with `everything` even if the transport below is not ready to take it."""
        cdef Py_ssize_t count = 0, size = 0
        cdef const char *start
        if self.encrypting:
            return 0  # called by a callback from within ssl, which is reading from the backlog
        while self.backlog.size and (everything or not self.raw_paused):
            start = self.backlog.first(&size)
            self.encrypting = True
            try:
                count = self.records.write(start, size)
            finally:
                self.encrypting = False
            self.backlog.taken(count)
            self.push_out(count)
            if count == 0:
                return 0  # until more ciphertext arrives from the peer
        return self.push_out(0) if count == 0 and (everything or not self.raw_paused) else 0

    cdef int push_out(self, Py_ssize_t written) except -1:
        """Pass the ciphertext to the transport below; there may be some even if the application wrote nothing."""
        cdef bytes data
        if self.raw is None or written == 0 and self.records.unsent() == 0:
            return 0
        data = self.records.take()
        if self.stream is not None:
            return self.stream.write_bytes(data)
        self.raw.write(data)
        return 0

    cdef Py_ssize_t unsent(self) except -1:
        return self.backlog.size + self.records.unsent()

    def set_write_limits(self, high=None, low=None):
        self.marks = water_marks(high, low, constants.FLOW_CONTROL_HIGH_WATER_SSL_WRITE * 1024)
        self.low, self.high = bytes_within(self.marks[0]), bytes_reaching(self.marks[1])
        if self.state == TLS_OPEN:
            self.control_writing()

    cdef int control_writing(self) except -1:
        cdef Py_ssize_t size = self.backlog.size
        if size == 0 and not self.application.writing_paused:
            return 0
        size = self.unsent()
        if size >= self.high and size > self.low:
            return self.application.tell_flow(self, True)
        if size <= self.low:
            return self.application.tell_flow(self, False)
        return 0

    # The end

    cdef int close(self) except -1:
        """Send queued data and our close_notify, wait for the peer's, then close the transport below."""
        if self.state in (TLS_FLUSHING, TLS_SHUTDOWN, TLS_OVER):
            return 0
        self.application.closed = True
        if self.state == TLS_NEW:
            self.ended()
            return 0
        if self.state == TLS_HANDSHAKE:
            return self.abort(None)
        self.start_flushing()
        self.watch_shutdown()
        if self.raw_reading_paused:
            self.raw_reading_paused = False
            self.raw.resume_reading()  # the peer's close_notify comes after data that will be discarded
        return self.finish_flushing()

    cdef int finish_flushing(self) except -1:
        try:
            self.records.discard()
            self.encrypt(True)
        except Exception as error:
            return self.fatal(error, "Fatal error on SSL protocol")
        if self.backlog.size == 0 and self.state == TLS_FLUSHING:
            self.start_shutdown()
            self.shut_down()
        return 0

    cdef int shut_down(self) except -1:
        try:
            if not self.raw_ended:
                self.records.discard()
                self.records.tls.unwrap()
        except _NOT_NOW:
            return self.push_out(0)
        except ssl.SSLError as error:
            return self.fatal(error, "Fatal error on transport")
        self.push_out(0)
        try:
            self.tell_eof()
        finally:
            # The transport below sends its data first, which a peer that doesn't read can delay forever.
            self.watch_shutdown()
            (<object> self.loop).call_soon(self.raw.close)
        return 0

    cdef int watch_shutdown(self) except -1:
        if self.shutdown_timer is None:
            self.shutdown_timer = (<object> self.loop).call_later(self.shutdown_timeout, self._shutdown_late)
        return 0

    def _shutdown_late(self):
        if self.state == TLS_FLUSHING or self.state == TLS_SHUTDOWN:
            self.cut(exceptions.TimeoutError("SSL shutdown timed out"))

    cdef int abort(self, object error) except -1:
        if error is None and self.state == TLS_OPEN:
            self.flush()  # asyncio's own loop would have sent by now what was written in this turn
        self.application.closed = True
        self.ended()
        return self.cut(error)

    cdef int cut(self, object error) except -1:
        """Abort the connection below at once."""
        if self.stream is not None:
            return self.stream.force_close(error)
        if self.raw is not None:
            force = getattr(self.raw, "_force_close", None)
            if force is None:
                self.raw.abort()
            else:
                force(error)
        return 0

    cdef int fatal(self, object error, str message) except -1:
        self.cut(error)
        if not isinstance(error, exceptions.CancelledError):
            report_fatal(self.loop, error, message, self.raw, self, self)
        return 0
