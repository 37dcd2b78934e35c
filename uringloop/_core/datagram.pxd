from cpython.object cimport PyObject

from uringloop._core.kernel cimport iovec, msghdr, sockaddr_storage, socklen_t, uint32_t
from uringloop._core.op cimport Op
from uringloop._core.transport cimport Transport

cdef extern from "<sys/socket.h>" nogil:
    struct mmsghdr:
        msghdr msg_hdr
        unsigned msg_len

cdef enum:
    BATCH = 32            # datagrams a system call receives or sends
    NAME = 28             # bytes of the longest IP address, a sockaddr_in6
    PEERS = 128           # addresses remembered by each transport


cdef struct Batch:
    # One direction's messages, as recvmmsg and sendmmsg want them.
    mmsghdr messages[BATCH]
    iovec pieces[BATCH]
    char names[BATCH][NAME]


cdef struct Peer:
    char name[NAME]
    socklen_t length
    PyObject *address     # owned


cdef class ReceiveRoom:
    # One a loop, used between a system call and the copying of what it brought, with no Python code in between.
    cdef Batch batch
    cdef char *area
    cdef char *large      # for what is no UDP: one datagram at a time, however large


cdef class DatagramPoll(Op):
    cdef DatagramTransport transport    # None once closed
    cdef uint32_t events
    cdef bint told                      # no ring: readiness was announced


cdef class DatagramTransport(Transport):
    # The loop's thread only.
    cdef readonly object _address       # the only one that may be sent to, or None
    cdef int family
    cdef bint connected
    cdef ReceiveRoom room
    cdef DatagramPoll reader
    cdef DatagramPoll writer            # made when a send would block
    cdef bint delivering                # sends are gathered until all that arrived is delivered
    cdef Batch *outgoing                # the gathered ones
    cdef list outgoing_data             # ... and what they point to
    cdef int outgoing_count
    cdef object waiting                 # (data, address), once a send would block
    cdef Py_ssize_t waiting_bytes
    cdef Peer *peers                    # made at the first datagram

    cdef int readable(self) except -1
    cdef int writable(self) except -1
    cdef int receive_batch(self, list data, list addresses) except -1
    cdef int receive_one(self, list data, list addresses) except -1
    cdef int deliver(self, list data, list addresses) except -1
    cdef object address_of(self, const char *name, socklen_t length)
    cdef int name_of(self, object address, sockaddr_storage *raw, socklen_t *length) except -1
    cdef int send_now(self, bytes data, object address) except -1
    cdef bint try_send(self, bytes data, object address) except -1
    cdef int gather(self, bytes data, object address) except -1
    cdef int flush(self) except -1
    cdef int enqueue(self, bytes data, object address) except -1
    cdef int await_room(self) except -1
    cdef int failed(self, object error) except -1
    cdef int after_sending(self) except -1
