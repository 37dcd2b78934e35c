# Peers: a cache of the IP addresses that a datagram transport last received from, in the kernel's form and as the tuples
# that programs see. Owns the tuples.
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.string cimport memcmp, memcpy, memset

from uringloop._core.kernel.address cimport address_from_raw


cdef class Peers:
    def __dealloc__(self):
        cdef int i
        for i in range(PEERS):
            Py_XDECREF(self.peers[i].address)

    cdef object address_of(self, const char *name, socklen_t length):
        """The address as a tuple, from the cache if it is one of the last addresses."""
        cdef Peer *peer
        cdef PyObject *before
        cdef sockaddr_storage raw
        # Both kinds of IP address have the port, which is the best cheap hash, at the same place.
        peer = &self.peers[(<unsigned char> name[3] ^ <unsigned char> name[2]) & (PEERS - 1)]
        if length > NAME:
            length = NAME
        if peer.address is NULL or peer.length != length or memcmp(peer.name, name, length):
            memset(&raw, 0, sizeof(raw))
            memcpy(&raw, name, length)
            address = address_from_raw(&raw, length)
            before = peer.address
            Py_INCREF(address)
            peer.address = <PyObject *> address
            peer.length = length
            memcpy(peer.name, name, length)
            Py_XDECREF(before)
        return <object> peer.address

    cdef bint name_of(self, object address, sockaddr_storage *raw, socklen_t *length):
        """Fill `raw` if the cache holds this very tuple, as for an answer to a delivered datagram; otherwise return False."""
        cdef Peer *peer
        cdef object port
        if type(address) is not tuple or len(<tuple> address) < 2:
            return False
        port = (<tuple> address)[1]
        if type(port) is not int or not 0 <= port <= 65535:
            return False
        peer = &self.peers[(<int> port ^ <int> port >> 8) & (PEERS - 1)]
        if peer.address != <PyObject *> address:
            return False
        memcpy(raw, peer.name, peer.length)
        length[0] = peer.length
        return True
