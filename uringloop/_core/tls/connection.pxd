from uringloop._core.loop.loop cimport Loop
from uringloop._core.tls.application cimport Application
from uringloop._core.tls.backlog cimport Backlog
from uringloop._core.tls.records cimport Records
from uringloop._core.tls.states cimport TlsStates
from uringloop._core.transport.stream cimport StreamTransport


cdef class TlsConnection(TlsStates):
    # The loop's thread only.
    cdef Loop loop
    cdef readonly Records records
    cdef readonly Application application
    cdef readonly object raw          # the transport below; None before connection_made
    cdef StreamTransport stream       # the same, if it is one of ours over a socket; otherwise None
    cdef object cvars                 # the contextvars.Context in which the transport below calls us
    cdef readonly dict extra          # for get_extra_info
    cdef object waiter                # a future for the outcome of the handshake; None once it is done
    cdef object handshake_timeout     # seconds
    cdef object shutdown_timeout
    cdef object handshake_timer
    cdef object shutdown_timer
    cdef double started               # debug mode: when the handshake began
    # No states, because they change in several states, each without the others:
    cdef bint encrypting
    cdef bint done_with               # the application closed it twice
    cdef bint raw_ended               # the transport below has reported EOF
    cdef bint raw_paused              # the transport below has called our pause_writing()
    cdef bint raw_reading_paused      # we have called its pause_reading()
    cdef Backlog backlog
    cdef readonly tuple marks         # the water marks of writing (low, high), as they were given
    cdef readonly tuple read_marks
    cdef Py_ssize_t high, low         # ... in bytes
    cdef Py_ssize_t read_high, read_low
    cdef long late_writes             # the loss and each write since the end, as asyncio counts them for its warning

    cdef int advance(self) except -1
    cdef int forget(self) except -1
    cdef int hand_shake(self) except -1
    cdef int handshake_failed(self, object error) except -1
    cdef int handshake_done(self) except -1
    cdef int wake_waiter(self, object error) except -1
    cdef int read(self) except -1
    cdef int deliver(self) except -1
    cdef int tell_eof(self) except -1
    cdef int pause_reading(self) except -1
    cdef int control_raw_reading(self) except -1
    cdef int write(self, bytes data) except -1
    cdef int encrypt(self, bint everything) except -1
    cdef int push_out(self, Py_ssize_t written) except -1
    cdef int flush(self) except -1
    cdef Py_ssize_t unsent(self) except -1
    cdef int control_writing(self) except -1
    cdef int close(self) except -1
    cdef int finish_flushing(self) except -1
    cdef int shut_down(self) except -1
    cdef int watch_shutdown(self) except -1
    cdef int abort(self, object error) except -1
    cdef int fatal(self, object error, str message) except -1
    cdef int cut(self, object error) except -1
