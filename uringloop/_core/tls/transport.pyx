# TlsTransport: the application's transport of a TLS connection, with asyncio's Transport interface. Owns nothing: the
# connection does. Copies written data, because the caller may change it afterwards.
from asyncio import constants

from cpython.bytes cimport PyBytes_GET_SIZE

from uringloop._core.lifetime.counters cimport COUNT_TRANSPORT, count_freed, count_made
from uringloop._core.lifetime.guard cimport URINGLOOP_DEBUG
from uringloop._core.tls.connection cimport TlsConnection
from uringloop._core.transport.stream cimport joined
from uringloop._core.transport.transport import StreamInterface
from uringloop._core.lifetime.unclosed cimport warn_unclosed


class SSLStreamInterface(StreamInterface):
    """The class that `__class__` shows. Programs look for "SSL" in the name."""


cdef bytes _copied(object data):
    """A copy of the data as bytes: of any type that asyncio accepts, also of a memoryview that is not contiguous."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"data: expecting a bytes-like instance, got {type(data).__name__}")
    return bytes(data)


cdef class TlsTransport:
    _start_tls_compatible = True
    _sendfile_compatible = constants._SendfileMode.FALLBACK

    def __cinit__(self, TlsConnection connection):
        if URINGLOOP_DEBUG:
            count_made(COUNT_TRANSPORT)
        self.connection = connection
        connection.application.transport = self

    def __dealloc__(self):
        if URINGLOOP_DEBUG:
            count_freed(COUNT_TRANSPORT)

    def __del__(self):
        if self.connection is not None and not self.connection.application.closed:
            try:
                warn_unclosed(self, f"unclosed transport {self!r}{self._where_made()}", 1)
            finally:  # also where the warning raises
                self.connection.application.closed = True

    def _where_made(self):
        where = getattr(self.connection.raw, "_where_made", None)
        return "" if where is None else where()

    # For isinstance(transport, asyncio.Transport): a compiled class cannot inherit from it.
    @property
    def __class__(self):
        return SSLStreamInterface

    def __repr__(self):
        state = "closing" if self.is_closing() else "open"
        return f"<{type(self).__name__} {state} on {self.connection.raw!r}>"

    @property
    def _loop(self):
        return self.connection.loop

    @property
    def _ssl_protocol(self):
        return self.connection

    @property
    def _cvars(self):
        return self.connection.cvars

    def get_extra_info(self, name, default=None):
        """Return information from the transport below, or about TLS: sslcontext, ssl_object, peercert, cipher, compression.
        """
        return self.connection.get_extra_info(name, default)

    def set_protocol(self, protocol):
        self.connection.application.set_protocol(protocol)

    def get_protocol(self):
        return self.connection.application.protocol

    # Reading

    def is_reading(self):
        return not self.connection.application.paused

    def pause_reading(self):
        self.connection.pause_reading()

    def resume_reading(self):
        self.connection.resume_reading()

    def set_read_buffer_limits(self, high=None, low=None):
        """Set the limits of the ciphertext that is kept while reading is paused."""
        self.connection.set_read_limits(high, low)

    def get_read_buffer_limits(self):
        return self.connection.read_marks

    def get_read_buffer_size(self):
        return self.connection.records.waiting()

    # Writing

    def write(self, data):
        """Encrypt and send the data, at the end of this turn at the latest."""
        if type(data) is not bytes:
            data = _copied(data)
        if PyBytes_GET_SIZE(data):
            self.connection.write(<bytes> data)

    def writelines(self, list_of_data):
        data = joined(list_of_data)
        if PyBytes_GET_SIZE(data):
            self.connection.write(<bytes> data)

    def can_write_eof(self):
        return False

    def write_eof(self):
        raise NotImplementedError

    def set_write_buffer_limits(self, high=None, low=None):
        self.connection.set_write_limits(high, low)

    def get_write_buffer_limits(self):
        return self.connection.marks

    def get_write_buffer_size(self):
        return self.connection.unsent()

    @property
    def _protocol_paused(self):
        return self.connection.application.writing_paused

    def _test__append_write_backlog(self, data):
        # For test suites that were written for asyncio's own loop.
        if len(data):
            self.connection.backlog.append(bytes(data))

    # The end

    def is_closing(self):
        raw = self.connection.raw
        return self.connection.application.closed or (raw is not None and raw.is_closing())

    def close(self):
        """Send queued data and our close_notify, wait for the peer's, then call connection_lost."""
        if self.connection.application.closed:
            self.connection.forget()
        else:
            self.connection.close()

    def abort(self):
        """Close at once, and drop queued data."""
        self.connection.abort(None)

    def _force_close(self, error):
        self.connection.abort(error)
