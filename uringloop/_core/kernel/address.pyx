# Addresses: conversion between the kernel's sockaddr and the socket module's addresses (a tuple, a str, bytes). Converts
# only literals, and never asks a resolver; it reports addresses that only the socket module can convert. Owns nothing.
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stddef cimport size_t
from libc.string cimport memcpy, memset, strlen

from uringloop._core.kernel.libc cimport (
    AF_INET, AF_INET6, AF_UNIX, htonl, htons, inet_ntop, inet_pton, ntohl, ntohs, sockaddr, sockaddr_in,
    sockaddr_in6, sockaddr_storage, sockaddr_un, socklen_t,
)

cdef extern from "Python.h":
    object PyUnicode_DecodeFSDefaultAndSize(const char *text, Py_ssize_t size)
    object PyUnicode_EncodeFSDefault(object text)
    object PyUnicode_FromKindAndData(int kind, const void *buffer, Py_ssize_t size)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    bint PyUnicode_IS_ASCII(object text)
    int PyUnicode_1BYTE_KIND

cdef extern from * nogil:
    """
    #include <stddef.h>
    #include <string.h>
    #include <sys/socket.h>
    #include <sys/un.h>
    #define UR_UN_HEAD offsetof(struct sockaddr_un, sun_path)
    #define UR_SA_HEAD offsetof(struct sockaddr, sa_data)
    """
    size_t UR_UN_HEAD
    size_t UR_SA_HEAD
    size_t strnlen(const char *text, size_t most)


cdef object address_from_raw(const sockaddr_storage *raw, socklen_t length):
    """The socket module's form of an address: (host, port), (host, port, flowinfo, scope), a path, an abstract name as
    bytes, '' for an unnamed Unix socket, None if there is no address at all."""
    cdef const sockaddr_in *four = <const sockaddr_in *> raw
    cdef const sockaddr_in6 *six = <const sockaddr_in6 *> raw
    cdef const sockaddr_un *path = <const sockaddr_un *> raw
    cdef char text[ADDRESS_TEXT]
    cdef Py_ssize_t size
    if length == 0:
        return None
    if raw.ss_family == AF_INET:
        size = ipv4_text(<const unsigned char *> &four.sin_addr, text)
        return (PyUnicode_FromKindAndData(PyUnicode_1BYTE_KIND, text, size), <int> ntohs(four.sin_port))
    if raw.ss_family == AF_INET6:
        inet_ntop(AF_INET6, &six.sin6_addr, text, ADDRESS_TEXT)
        return (PyUnicode_FromKindAndData(PyUnicode_1BYTE_KIND, text, strlen(text)), <int> ntohs(six.sin6_port),
                ntohl(six.sin6_flowinfo), six.sin6_scope_id)
    if raw.ss_family == AF_UNIX:
        size = <Py_ssize_t> length - <Py_ssize_t> UR_UN_HEAD
        if size <= 0:
            return ""
        if path.sun_path[0] == 0:
            return PyBytes_FromStringAndSize(path.sun_path, size)
        # The kernel counts the terminating null only if there is room for one.
        return PyUnicode_DecodeFSDefaultAndSize(path.sun_path, <Py_ssize_t> strnlen(path.sun_path, size))
    # A family that the core doesn't know: return what the socket module returns for unknown families.
    return (<int> raw.ss_family, (<const char *> raw)[UR_SA_HEAD:length] if length > UR_SA_HEAD else b"")


cdef bint address_is_known(int family) noexcept:
    """Whether address_from_raw gives the same result as the socket module."""
    return family == AF_INET or family == AF_INET6 or family == AF_UNIX


cdef int ipv4_text(const unsigned char *octets, char *text) noexcept nogil:
    """Write an IPv4 address in dotted decimal; return the length. inet_ntop uses sprintf, and is ten times slower."""
    cdef int i, at = 0
    cdef unsigned octet
    for i in range(4):
        octet = octets[i]
        if octet >= 100:
            text[at] = <char> (48 + octet // 100)
            at += 1
        if octet >= 10:
            text[at] = <char> (48 + octet // 10 % 10)
            at += 1
        text[at] = <char> (48 + octet % 10)
        text[at + 1] = b"."
        at += 2
    return at - 1


cdef int raw_from_address(int family, object address, sockaddr_storage *raw, socklen_t *length) except -1:
    """Fill `raw` and return 1; return 0 if the socket module must convert the address: a name, an unusual type, or a
    range error, for which the socket module raises the exception."""
    if family == AF_UNIX:
        return _unix(address, <sockaddr_un *> raw, length)
    if type(address) is not tuple or not 2 <= len(<tuple> address) <= 4:
        return 0
    if family == AF_INET and len(<tuple> address) == 2:
        return _ipv4(<tuple> address, <sockaddr_in *> raw, length)
    if family == AF_INET6:
        return _ipv6(<tuple> address, <sockaddr_in6 *> raw, length)
    return 0


cdef const char *_host(object host) except? NULL:
    """The text of a host that may be a literal address; otherwise NULL."""
    cdef Py_ssize_t size
    cdef const char *text
    if type(host) is not str or not PyUnicode_IS_ASCII(host):
        return NULL
    text = PyUnicode_AsUTF8AndSize(host, &size)
    return text if size < ADDRESS_TEXT and strlen(text) == <size_t> size else NULL


cdef long _number(object value, long most) noexcept:
    """The value, if it is exactly an int from 0 to `most`; otherwise -1."""
    cdef long number
    if type(value) is not int:
        return -1
    try:
        number = value
    except OverflowError:
        return -1
    return number if 0 <= number <= most else -1


cdef int _ipv4(tuple address, sockaddr_in *raw, socklen_t *length) except -1:
    cdef const char *host = _host(address[0])
    cdef long port = _number(address[1], 65535)
    if host is NULL or port < 0:
        return 0
    memset(raw, 0, sizeof(sockaddr_in))
    if inet_pton(AF_INET, host, &raw.sin_addr) != 1:
        return 0
    raw.sin_family = AF_INET
    raw.sin_port = htons(<unsigned short> port)
    length[0] = sizeof(sockaddr_in)
    return 1


cdef int _ipv6(tuple address, sockaddr_in6 *raw, socklen_t *length) except -1:
    cdef const char *host = _host(address[0])
    cdef long port = _number(address[1], 65535)
    cdef long flow = _number(address[2], 0xFFFFF) if len(address) > 2 else 0
    cdef long scope = _number(address[3], 0xFFFFFFFF) if len(address) > 3 else 0
    if host is NULL or port < 0 or flow < 0 or scope < 0:
        return 0
    memset(raw, 0, sizeof(sockaddr_in6))
    if inet_pton(AF_INET6, host, &raw.sin6_addr) != 1:
        return 0
    raw.sin6_family = AF_INET6
    raw.sin6_port = htons(<unsigned short> port)
    raw.sin6_flowinfo = htonl(<unsigned int> flow)
    raw.sin6_scope_id = <unsigned int> scope
    length[0] = sizeof(sockaddr_in6)
    return 1


cdef int _unix(object address, sockaddr_un *raw, socklen_t *length) except -1:
    cdef Py_ssize_t size
    cdef bytes path
    if type(address) is str:
        path = PyUnicode_EncodeFSDefault(address)
    elif type(address) is bytes:
        path = address
    else:
        return 0
    size = PyBytes_GET_SIZE(path)
    if size == 0:
        return 0  # its meaning depends on the Python version
    memset(raw, 0, sizeof(sockaddr_un))
    raw.sun_family = AF_UNIX
    if PyBytes_AS_STRING(path)[0] == 0:
        if size > <Py_ssize_t> sizeof(raw.sun_path):
            return 0
        length[0] = <socklen_t> (UR_UN_HEAD + size)
    else:
        # A path needs room for its null. A null inside it would silently name another file; the socket module handles it.
        if size >= <Py_ssize_t> sizeof(raw.sun_path):
            return 0
        length[0] = <socklen_t> (UR_UN_HEAD + size + 1)
    memcpy(raw.sun_path, PyBytes_AS_STRING(path), size)
    return 1


def to_raw(family, address):
    """The sockaddr as bytes, or None if only the socket module can convert the address."""
    cdef sockaddr_storage raw
    cdef socklen_t length = 0
    if not raw_from_address(family, address, &raw, &length):
        return None
    return (<char *> &raw)[:length]


def from_raw(bytes raw):
    """The address in a sockaddr."""
    cdef sockaddr_storage copy
    cdef Py_ssize_t size = len(raw)
    if size > <Py_ssize_t> sizeof(copy):
        raise ValueError("longer than any sockaddr")
    memset(&copy, 0, sizeof(copy))
    memcpy(&copy, PyBytes_AS_STRING(raw), size)
    return address_from_raw(&copy, <socklen_t> size)
