# DirectRecords: one TLS session, of which OpenSSL itself encrypts and decrypts the data. Owns the ciphertext that has to be
# sent, as the bytes object that the transport below sends. CPython's own ssl objects do all else: the handshake, the end,
# and whatever they raise. Holds no memory of the caller's after `keep`.
#
# Ciphertext takes two copies fewer than through MemoryBIOs: OpenSSL reads from the receive buffer, and writes into the
# bytes that are sent.
import os
from asyncio import sslproto

try:
    import _ssl
except ImportError:  # a Python without ssl
    _ssl = None

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF

from uringloop._core.cpython.bytes_resize cimport _PyBytes_Resize
from uringloop._core.cpython.canaries import relied_on, sessions_are_as_known
from uringloop._core.cpython.openssl cimport (
    UR_TLS_DRY, UR_TLS_FAILED, UR_TLS_FULL, UR_TLS_OTHER, UR_TLS_PARTIAL, ur_arrived_keep, ur_arrived_size,
    ur_errors_are_left, ur_leaving, ur_leaving_kept, ur_openssl_found, ur_session_is_as_known, ur_session_restore,
    ur_session_silence, ur_session_take, ur_ssl, ur_tls_read, ur_tls_write,
)
from uringloop._core.lifetime.guard cimport URINGLOOP_DEBUG
from uringloop._core.tls.records cimport Records

cdef extern from "Python.h":
    PyObject *PyBytes_FromStringAndSize_raw "PyBytes_FromStringAndSize"(const char *, Py_ssize_t) except NULL

cdef extern from *:
    """
    static inline PyObject *ur_steal(PyObject *owned) { return owned; }
    """
    object steal "ur_steal"(PyObject *owned)  # the reference becomes the result's

cdef enum:
    WHOLE = 16384    # plain text of the longest record
    RECORD = 18432   # the longest record, with all of its overhead
    SMALLEST = 256
    OVERHEAD = 22    # TLS 1.3's; others are learnt

cdef object ssl = sslproto.ssl
cdef object _wrap_bio = ssl.SSLContext.wrap_bio if ssl is not None else None  # a program's own may keep the BIOs
cdef object _file = getattr(_ssl, "__file__", None)  # None: OpenSSL is a part of the interpreter


cdef bint _can_take(Records records) except -1:
    """Whether the session is CPython's own, has not begun, and has the layout that the core knows. What a program's callback
    for messages raises, only CPython's methods see."""
    if not _found or type(records.data) is not _ssl._SSLSocket:
        return False
    if type(records.incoming) is not ssl.MemoryBIO or type(records.outgoing) is not ssl.MemoryBIO:
        return False
    if records.incoming.pending or records.outgoing.pending:
        return False
    context = records.data.context
    return context._msg_callback is None and ur_session_is_as_known(
        records.data, context, records.incoming, records.outgoing
    )


cdef class DirectRecords(Records):
    def __cinit__(self, tls, incoming, outgoing):
        if not _can_take(self):
            raise TypeError(f"OpenSSL cannot be called on {tls!r}")
        self.ssl = ur_session_take(self.data, &self.arrived, &self.leaving)
        if self.ssl is NULL:
            raise MemoryError
        self.incoming = self.outgoing = None
        self.overhead = OVERHEAD

    def __dealloc__(self):
        if URINGLOOP_DEBUG:
            assert self.ssl is NULL or self.arrived.lent_size == 0
        Py_XDECREF(self.sealed)

    cdef int feed(self, const char *data, Py_ssize_t length) except -1:
        """Lend ciphertext that has arrived, until `keep`."""
        if length == 0 or self.ssl is NULL:
            return 0
        self.keep()
        self.arrived.lent, self.arrived.lent_size = data, length
        self.fed += length
        self.dry = False
        return 0

    cdef int keep(self) except -1:
        if self.ssl is not NULL and self.arrived.lent_size and ur_arrived_keep(self.arrived) < 0:
            raise MemoryError
        return 0

    cdef Py_ssize_t waiting(self) except -1:
        return 0 if self.ssl is NULL else ur_arrived_size(self.arrived)

    cdef Py_ssize_t read_into(self, char *room, Py_ssize_t size) except -1:
        """Read plain text until the room is full or there is no more."""
        cdef ur_ssl *session = self.ssl
        cdef Py_ssize_t got
        cdef int end, before
        if self.dry or self.ended:
            return 0
        if self.failure is not None:
            error, self.failure = self.failure, None
            raise error
        if session is NULL:
            return Records.read_into(self, room, size)
        owner = self.data  # our own reference: other threads may run
        got = ur_tls_read(owner, session, self.arrived, room, size, &end)
        if end == UR_TLS_FULL:
            self.fed = max(self.fed - got, <Py_ssize_t> SMALLEST)
        elif end == UR_TLS_DRY:
            self.dry = True
            self.fed = 0
        elif end == UR_TLS_PARTIAL:
            self.dry = True
            self.fed = min(self.fed, <Py_ssize_t> RECORD)
        else:
            before = ur_session_silence(session) if end == UR_TLS_FAILED else -1
            try:
                got += Records.read_into(self, room + got, size - got)
            except Exception as error:
                if got == 0:
                    raise
                self.failure = error  # the plain text before it is valid
            finally:
                if before >= 0:
                    ur_session_restore(session, before)
        if URINGLOOP_DEBUG:
            assert not ur_errors_are_left()
        return got

    cdef bytes read_all(self):
        """All available plain text. If an error follows it, the next read raises that."""
        cdef Py_ssize_t room = max(self.fed, <Py_ssize_t> SMALLEST), got = 0
        cdef PyObject *data
        if self.dry or self.ended:
            return b""
        data = PyBytes_FromStringAndSize_raw(NULL, room)
        try:
            while True:
                got += self.read_into(PyBytes_AS_STRING(<bytes> data) + got, room - got)
                if got < room or self.dry or self.failure is not None:
                    break
                room *= 2
                _PyBytes_Resize(&data, room)
            if got < room:
                _PyBytes_Resize(&data, got)
        except BaseException as error:
            if data is NULL or got == 0:
                Py_XDECREF(data)  # NULL if changing its size failed, which has freed it
                raise
            self.failure = error
            _PyBytes_Resize(&data, got)
        return <bytes> steal(data)

    cdef Py_ssize_t write(self, const char *data, Py_ssize_t size) except -1:
        """Encrypt: how much of it; 0 while the session has to hear from the peer first."""
        cdef ur_leaving *leaving = self.leaving
        cdef Py_ssize_t done, count = (size + WHOLE - 1) // WHOLE, longer
        cdef int end
        if self.ssl is NULL:
            return Records.write(self, data, size)
        if self.sealed is NULL and leaving.kept_size == 0:
            leaving.room_size = size + count * self.overhead
            self.sealed = PyBytes_FromStringAndSize_raw(NULL, leaving.room_size)
            leaving.room = PyBytes_AS_STRING(<bytes> self.sealed)
        session = self.data
        done = ur_tls_write(session, self.ssl, data, size, &end)
        leaving.room_size = leaving.room_used  # what other calls make the session write goes elsewhere
        if leaving.kept_size and self.sealed is not NULL:
            longer = (<Py_ssize_t> (leaving.room_used + leaving.kept_size) - done + count - 1) // count
            self.overhead = min(max(longer, self.overhead), <Py_ssize_t> SMALLEST)
        if end == UR_TLS_OTHER:
            done += Records.write(self, data + done, size - done)
        if URINGLOOP_DEBUG:
            assert not ur_errors_are_left()
        return done

    cdef int close(self) except -1:
        self.ssl = NULL
        self.arrived = NULL
        self.leaving = NULL
        return Records.close(self)

    cdef Py_ssize_t unsent(self) except -1:
        return 0 if self.ssl is NULL else self.leaving.room_used + self.leaving.kept_size

    cdef bytes take(self):
        cdef ur_leaving *leaving = self.leaving
        cdef Py_ssize_t size = self.unsent(), used
        cdef PyObject *sealed = self.sealed
        if self.ssl is NULL:
            return b""
        self.sealed = NULL
        used, leaving.room_used, leaving.room_size = leaving.room_used, 0, 0
        if sealed is NULL:
            sealed = PyBytes_FromStringAndSize_raw(NULL, size)
        elif PyBytes_GET_SIZE(<bytes> sealed) != size:
            _PyBytes_Resize(&sealed, size)
        if leaving.kept_size:
            ur_leaving_kept(leaving, PyBytes_AS_STRING(<bytes> sealed) + used)
        return <bytes> steal(sealed)


cdef Records records_of(object context, bint server_side, object server_hostname):
    """A new session. OpenSSL is called for it where that is possible."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_side=server_side, server_hostname=server_hostname)
    cdef Records records = Records(tls, incoming, outgoing)
    if not _used or getattr(type(context), "wrap_bio", None) is not _wrap_bio or not _can_take(records):
        return records
    return DirectRecords(tls, incoming, outgoing)


def _begin(context):
    """For the canary: a client's session and its first message."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    cdef DirectRecords records = DirectRecords(
        context.wrap_bio(incoming, outgoing, server_hostname="localhost"), incoming, outgoing)
    try:
        records.tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return records, records.take()


def _fail(DirectRecords records, bytes data):
    """For the canary: read ciphertext that is none."""
    cdef char room[16]
    records.feed(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    try:
        records.read_into(room, 16)
    finally:
        records.keep()


cdef bint _found = ssl is not None and _file is not None and ur_openssl_found(os.fsencode(_file))
cdef bint _used = relied_on("openssl", _found and sessions_are_as_known(_begin, _fail))
