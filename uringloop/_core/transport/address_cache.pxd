from cpython.object cimport PyObject

from uringloop._core.kernel.libc cimport sockaddr_storage, socklen_t

cdef enum:
    PEERS = 128           # the number of addresses kept
    NAME = 28             # bytes of the longest IP address, a sockaddr_in6


cdef struct Peer:
    char name[NAME]
    socklen_t length
    PyObject *address     # owned


cdef class Peers:
    # The loop's thread only.
    cdef Peer peers[PEERS]

    cdef object address_of(self, const char *name, socklen_t length)
    cdef bint name_of(self, object address, sockaddr_storage *raw, socklen_t *length)
