from libc.stdint cimport uint32_t

from uringloop._core.engine.op cimport Op
from uringloop._core.kernel.libc cimport sockaddr_storage, socklen_t
from uringloop._core.transport.address_cache cimport Peers
from uringloop._core.transport.datagram_batch cimport DatagramBatch, ReceiveRoom
from uringloop._core.transport.transport cimport Transport

cdef class DatagramPoll(Op):
    cdef DatagramTransport transport    # None once closed
    cdef uint32_t events
    cdef bint readiness_known           # without a ring: the descriptor is ready


cdef class DatagramTransport(Transport):
    # The loop's thread only.
    cdef readonly object _address       # the only address that may be sent to, or None
    cdef int family
    cdef bint connected
    cdef ReceiveRoom room
    cdef DatagramPoll reader
    cdef DatagramPoll writer            # made when a send would block
    cdef bint by_program                # in sendto(): error_received runs in the caller's context
    cdef bint delivering                # sends are gathered until all arrived data is delivered
    cdef DatagramBatch outgoing         # the gathered datagrams; made on first use
    cdef object waiting                 # queued (data, address), once a send would block
    cdef Py_ssize_t waiting_bytes
    cdef Peers peers                    # made on first use
    cdef readonly bint _paused          # pause_reading() was called
    cdef tuple undelivered              # (data, addresses) received before a pause or an interrupt

    cdef int readable(self) except -1
    cdef int writable(self) except -1
    cdef int read_on(self) except -1
    cdef int receive_batch(self, list data, list addresses) except -1
    cdef int receive_one(self, list data, list addresses) except -1
    cdef int deliver(self, list data, list addresses) except -1
    cdef int deliver_some(self, list data, list addresses, Py_ssize_t *done) except -1
    cdef int name_of(self, object address, sockaddr_storage *raw, socklen_t *length) except -1
    cdef int send_now(self, bytes data, object address) except -1
    cdef bint try_send(self, bytes data, object address) except -1
    cdef int gather(self, bytes data, object address) except -1
    cdef bint gathered(self) noexcept
    cdef int send_gathered(self) except -1
    cdef int flush(self) except -1
    cdef int enqueue(self, bytes data, object address) except -1
    cdef int await_room(self) except -1
    cdef int failed(self, object error) except -1
    cdef int after_sending(self) except -1
