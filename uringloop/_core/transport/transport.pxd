from cpython.object cimport PyObject
from libc.stdint cimport uint8_t

from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.ready_queue cimport Runnable
from uringloop._core.loop.loop cimport Loop


cdef enum TransportState:
    # In this order; a connection that is aborted, or fails, is lost without closing first.
    TRANSPORT_NEW          # it has no descriptor yet
    TRANSPORT_OPEN
    TRANSPORT_CLOSING      # close() was called: it delivers nothing more, and sends what was written before
    TRANSPORT_LOST         # connection_lost is scheduled: it sends nothing more
    TRANSPORT_RELEASING    # connection_lost was called: the descriptor waits for the operations in the kernel
    TRANSPORT_CLOSED       # the descriptor is closed


cdef class Sink(Runnable):
    cdef int bytes_arrived(self, const char *data, Py_ssize_t length) except -1


cdef class Transport:
    # The loop's thread only.
    cdef readonly Loop _loop
    cdef Engine engine
    cdef readonly object _protocol     # None once connection_lost was called
    cdef readonly object _server
    cdef object cvars                  # the contextvars.Context in which the protocol's methods run
    cdef object sock                   # the socket object; made on first use, if the core made the descriptor
    cdef dict extra                    # additional values for get_extra_info
    cdef bint holds_socket             # the descriptor stays open if the program closes the socket object
    cdef uint8_t state                 # TransportState
    cdef int fd                        # ours to close, through `sock` if there is one; -1 while new and once closed
    cdef object made_at                # debug mode: the stack where it was made
    cdef bytes peer                    # raw address of the peer, b"" where there is none
    cdef bytes local                   # our own raw address, once the descriptor is closed
    cdef object __weakref__
    cdef dict __dict__                 # attributes that programs set; NULL until the first
    cdef long late_writes              # the loss and each write since, as asyncio counts them for its warning
    cdef Py_ssize_t high, low          # water marks of the write buffer
    # No states, because they change in any state, in any order:
    cdef bint sated                    # its protocol was called enough in this turn
    cdef bint writing_paused           # pause_writing() was called last

    cdef int begin(self, Loop loop, object protocol, int fd, object sock, dict extra, object server, object cvars) except -1
    cdef int introduce(self, object waiter) except -1
    cdef int opened(self, int fd) except -1
    cdef int start_closing(self) except -1
    cdef int lose(self, object error) except -1
    cdef int start_releasing(self) except -1
    cdef int released(self) except -1
    cdef int close_descriptor(self, uint8_t state) except -1
    cdef int data_arrived(self, const char *data, Py_ssize_t length, bytes whole) except -1
    cdef int eof_arrived(self) except -1
    cdef Py_ssize_t receive(self, Py_ssize_t expected) except? -32000
    cdef bint wants_data(self) noexcept
    cdef void waits_changed(self) noexcept
    cdef int sent(self) except -1
    cdef int send_written(self) except -1
    cdef Py_ssize_t unsent(self) noexcept
    cdef void drop_unsent(self) noexcept
    cdef int stop_receiving(self) except -1
    cdef int io_failed(self, int error, str message) except -1
    cdef bint idle(self) noexcept
    cdef int release(self) except -1
    cdef int pause_writer(self) except -1
    cdef int tell_flow(self, object protocol, bint pause) except -1
    cdef int resume_writer(self) except -1
    cdef int fatal(self, object error, str message) except -1
    cdef int force_close(self, object error) except -1
    cdef object call(self, str name, object arg)
    cdef object make_socket(self)
    cdef bytes local_address(self)
