from uringloop._core.kernel.libc cimport sockaddr_storage, socklen_t

# Longest text of an address, with room for a scope.
cdef enum:
    ADDRESS_TEXT = 64

cdef object address_from_raw(const sockaddr_storage *raw, socklen_t length)
cdef bint address_is_known(int family) noexcept
cdef int raw_from_address(int family, object address, sockaddr_storage *raw, socklen_t *length) except -1
cdef int ipv4_text(const unsigned char *octets, char *text) noexcept nogil
