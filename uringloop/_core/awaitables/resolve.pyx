# Lookups that need no resolver: address literals with numeric ports, and getnameinfo with numeric flags. All others, and
# all doubtful ones, go to BaseEventLoop's own method and so to a thread. The C library decides what the answer for a
# literal consists of (kinds of socket, protocols, their order): this asks it once for each combination of arguments, about
# an address that needs no resolver either, and keeps the answer.
import socket
from asyncio import base_events

from cpython.object cimport PyObject
from libc.string cimport strlen

from uringloop._core.awaitables.future_op cimport FutureOp
from uringloop._core.kernel.address cimport ADDRESS_TEXT
from uringloop._core.kernel.libc cimport AF_INET, AF_INET6, in6_addr, in_addr, inet_ntop, inet_pton
from uringloop._core.loop.loop cimport Loop
from uringloop._core.lifetime.guard cimport ur_guard, ur_guard_init, ur_guard_lock, ur_guard_unlock, ur_only_core_makes

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    bint PyUnicode_IS_ASCII(object text)
    object PyUnicode_FromKindAndData(int kind, const void *buffer, Py_ssize_t size)
    int PyUnicode_1BYTE_KIND

cdef extern from *:
    """
    UR_DEFINE_FREE_LIST(ur_resolved)
    """
    void ur_resolved_install(object type) noexcept

cdef enum:
    TEMPLATES = 16

cdef struct Template:
    int host_family
    int family
    int kind
    int proto
    int flags
    PyObject *entries     # owned: a tuple of (family, kind, proto), or None if only a thread can answer

cdef ur_guard templates_guard
cdef Template templates[TEMPLATES]
cdef int template_count = 0
cdef int template_next = 0
ur_guard_init(&templates_guard)

# With other flags, the answer depends on the machine's addresses or on how the name is written.
cdef int PLAIN_FLAGS = socket.AI_PASSIVE | socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
cdef int ALL_NUMERIC = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV
cdef object _getaddrinfo = socket.getaddrinfo
cdef dict _socket_names = socket.__dict__
cdef object _by_thread = base_events.BaseEventLoop.getaddrinfo
cdef object _name_by_thread = base_events.BaseEventLoop.getnameinfo


cdef class Resolved(FutureOp):
    """A coroutine that never suspends."""

    cdef object first(self):
        return self.outcome if self.call is None else self.call(*self.arguments)


cdef int _port(object port) except -2:
    """The port's number, or -1 for a port that only the C library understands."""
    cdef const char *text
    cdef Py_ssize_t size, i
    cdef long number = 0
    if port is None:
        return 0
    if type(port) is int:
        return <int> port if 0 <= port <= 65535 else -1
    if type(port) is not str or not PyUnicode_IS_ASCII(port):
        return -1
    text = PyUnicode_AsUTF8AndSize(port, &size)
    if not 1 <= size <= 5:
        return -1
    for i in range(size):
        if not 48 <= text[i] <= 57:
            return -1
        number = number * 10 + text[i] - 48
    return <int> number if number <= 65535 else -1


cdef object _entries(int host_family, int family, int kind, int proto, int flags):
    """The (family, kind, proto) of each entry of the answer, or None."""
    global template_count, template_next
    cdef Template *template
    cdef int i
    cdef PyObject *entries = NULL
    ur_guard_lock(&templates_guard)
    for i in range(template_count):
        template = &templates[i]
        if (template.host_family == host_family and template.kind == kind and template.family == family
                and template.proto == proto and template.flags == flags):
            entries = template.entries
            break
    ur_guard_unlock(&templates_guard)
    if entries is not NULL:
        return <object> entries
    try:
        host = "127.0.0.1" if host_family == AF_INET else "::1"
        found = tuple([entry[:3] for entry in _getaddrinfo(host, 1, family, kind, proto, flags)])
    except (OSError, OverflowError):
        found = None
    entries = _owned(found)
    ur_guard_lock(&templates_guard)
    template = &templates[template_next]
    template.host_family, template.family, template.kind = host_family, family, kind
    template.proto, template.flags = proto, flags
    # The replaced tuple stays alive, because another thread may be reading it; there are few of them.
    template.entries = entries
    template_next = (template_next + 1) % TEMPLATES
    template_count = max(template_count, template_next, TEMPLATES if template_next == 0 else 0)
    ur_guard_unlock(&templates_guard)
    return found


_kept = []


cdef PyObject *_owned(object value) except NULL:
    for kept in _kept:
        if kept == value:
            return <PyObject *> kept
    _kept.append(value)
    return <PyObject *> value


cdef object _literal(object host, int port, int family, int kind, int proto, int flags):
    """The answer for a literal, None for anything else."""
    cdef in6_addr raw
    cdef char text[ADDRESS_TEXT]
    cdef Py_ssize_t size
    cdef const char *given
    cdef object entries, name, address
    if not PyUnicode_IS_ASCII(host):
        return None
    given = PyUnicode_AsUTF8AndSize(host, &size)
    if size >= ADDRESS_TEXT or strlen(given) != <size_t> size:
        return None
    if inet_pton(AF_INET, given, &raw) == 1:
        entries = _entries(AF_INET, family, kind, proto, flags)
        address = (host, port)  # inet_pton accepts an IPv4 address only in its canonical form
    elif inet_pton(AF_INET6, given, &raw) == 1:
        entries = _entries(AF_INET6, family, kind, proto, flags)
        inet_ntop(AF_INET6, &raw, text, ADDRESS_TEXT)
        address = (PyUnicode_FromKindAndData(PyUnicode_1BYTE_KIND, text, strlen(text)), port, 0, 0)
    else:
        return None
    if entries is None:
        return None
    return [((<tuple> entry)[0], (<tuple> entry)[1], (<tuple> entry)[2], "", address) for entry in <tuple> entries]


def getaddrinfo(Loop self, host, port, *, family=0, type=0, proto=0, flags=0):
    """socket.getaddrinfo, which answers for a literal without a thread or a suspension."""
    cdef Resolved done
    cdef object answer
    cdef int number
    if host.__class__ is str and not self._debug and _socket_names["getaddrinfo"] is _getaddrinfo:
        number = _port(port)
        if number >= 0 and isinstance(flags, int) and not flags & ~PLAIN_FLAGS and _are_ints(family, type, proto):
            answer = _literal(host, number, family, type, proto, flags)
            if answer is not None:
                done = Resolved.__new__(Resolved)
                done.loop = self
                done.outcome = answer
                return done
    return _by_thread(self, host, port, family=family, type=type, proto=proto, flags=flags)


cdef bint _are_ints(object family, object kind, object proto) except -1:
    """Whether all are ints that fit into a C int; for anything else, socket.getaddrinfo raises the right exception."""
    if not (isinstance(family, int) and isinstance(kind, int) and isinstance(proto, int)):
        return False
    return -1 <= family < 1 << 30 and -1 <= kind < 1 << 30 and -1 <= proto < 1 << 30


def getnameinfo(Loop self, sockaddr, flags=0):
    """socket.getnameinfo, which cannot block if the flags ask for a numeric host and service."""
    cdef Resolved done
    if isinstance(flags, int) and flags & ALL_NUMERIC == ALL_NUMERIC:
        done = Resolved.__new__(Resolved)
        done.loop = self
        done.call = socket.getnameinfo
        done.arguments = (sockaddr, flags)
        return done
    return _name_by_thread(self, sockaddr, flags)


ur_resolved_install(<object> Resolved)
ur_only_core_makes(Resolved)
