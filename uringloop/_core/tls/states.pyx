# TlsStates: the state of a TLS connection, and the only methods that change it. Owns nothing else: a TlsConnection, which is
# one, decides when to take which transition.
from uringloop._core.lifetime.guard cimport URINGLOOP_DEBUG
from uringloop._core.transport.transport cimport Sink

cdef tuple _STATES = ("new", "handshake", "open", "flushing", "shutdown", "over")


cdef class TlsStates(Sink):
    cdef int start_handshake(self) except -1:
        """new -> handshake: the transport below is connected."""
        return self._step(TLS_NEW, TLS_HANDSHAKE)

    cdef int opened(self) except -1:
        """handshake -> open: the handshake is done."""
        return self._step(TLS_HANDSHAKE, TLS_OPEN)

    cdef int start_flushing(self) except -1:
        """open -> flushing: the application closes it, and what it wrote before leaves first."""
        return self._step(TLS_OPEN, TLS_FLUSHING)

    cdef int start_shutdown(self) except -1:
        """flushing -> shutdown: all data is encrypted, and close_notify follows."""
        return self._step(TLS_FLUSHING, TLS_SHUTDOWN)

    cdef void ended(self) noexcept:
        """any state -> over: it has failed, or was aborted, or the transport below is lost."""
        self.state = TLS_OVER

    cdef int _step(self, TlsState before, TlsState after) except -1:
        if URINGLOOP_DEBUG:
            assert self.state == before, f"a TLS connection goes from {self.state_name()} to {_STATES[<int> after]}"
        self.state = after
        return 0

    cdef str state_name(self):
        return _STATES[<int> self.state]
