# Records: one TLS session between two memory buffers, CPython's own ssl objects called with as few frames, copies and
# exceptions as they allow. Owns the SSLObject and its MemoryBIOs. Knows no transport, no protocol and no state of the
# connection.
#
# Asking for plain text where there is none raises SSLWantReadError, which costs as much as decrypting a small record.
# So it is asked for only where ciphertext has arrived since, or is left: `dry` says that neither is so.
from asyncio import sslproto

try:
    import _ssl
except ImportError:  # a Python without it
    pass

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.string cimport memcpy

from uringloop._core.cpython.bytes_resize cimport _PyBytes_Resize

cdef extern from "Python.h":
    object PyObject_VectorcallMethod(object name, PyObject **args, size_t nargsf, PyObject *kwnames)
    size_t PY_VECTORCALL_ARGUMENTS_OFFSET

cdef extern from *:
    """
    static inline PyObject *ur_steal(PyObject *owned) { return owned; }
    """
    object steal "ur_steal"(PyObject *owned)  # the reference becomes the result's
    PyObject *PyBytes_FromStringAndSize_raw "PyBytes_FromStringAndSize"(const char *, Py_ssize_t) except NULL

cdef enum:
    RECORD = 18432  # no record is longer, with all that is around it
    SMALLEST = 256
    MOST = 1 << 30  # ssl counts in a C int

cdef object ssl = sslproto.ssl  # None in a Python without it
cdef tuple _NOT_NOW = (ssl.SSLWantReadError, ssl.SSLSyscallError) if ssl is not None else ()
# Compiled, it lets go of a buffer before it returns. Anything else may keep what it is given, as a tracer does.
cdef object _Inner = _ssl._SSLSocket if ssl is not None else None
cdef object _ZeroReturn = ssl.SSLZeroReturnError if ssl is not None else ()
# While these are SSLObject's own, they only pass on to the object inside.
cdef tuple _PLAIN = tuple(ssl.SSLObject.__dict__[name] for name in ("read", "write", "pending")) if ssl is not None else ()


cdef inline object call(object room, str name, object first, object second):
    """room.name(first, second); either may be left out, as NULL would be: None stands for it."""
    cdef PyObject *stack[4]
    stack[1] = <PyObject *> room
    stack[2] = <PyObject *> first
    stack[3] = <PyObject *> second
    cdef size_t count = 3 if second is not None else 2 if first is not None else 1
    return PyObject_VectorcallMethod(name, &stack[1], count | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL)


cdef object _inside(object tls):
    """The object that `tls` passes reads and writes on to; `tls` itself where it is of another make."""
    kind = type(tls)
    if tuple([getattr(kind, name, None) for name in ("read", "write", "pending")]) != _PLAIN:
        return tls
    inner = getattr(tls, "_sslobj", None)
    return inner if type(inner) is _Inner else tls


cdef class Window:
    cdef Window over(self, const char *start, Py_ssize_t size):
        """To be read."""
        self.start, self.size, self.writable = <char *> start, size, False
        return self

    cdef Window onto(self, char *start, Py_ssize_t size):
        """To be written."""
        self.start, self.size, self.writable = start, size, True
        return self

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.start, self.size, not self.writable, flags)


cdef class Records:
    def __cinit__(self, context, bint server_side, server_hostname):
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()
        self.tls = context.wrap_bio(
            self.incoming, self.outgoing, server_side=server_side, server_hostname=server_hostname
        )
        self.data = _inside(self.tls)
        self.lends = type(self.data) is _Inner
        self.dry = True
        self.window = Window()

    cdef int feed(self, const char *data, Py_ssize_t length) except -1:
        """Ciphertext that has arrived: copied."""
        if length == 0:
            return 0
        call(self.incoming, "write", self.window.over(data, length), None)
        self.fed += length
        self.dry = False
        return 0

    cdef Py_ssize_t waiting(self) except -1:
        """Bytes of ciphertext that were not looked at yet."""
        return self.incoming.pending

    cdef Py_ssize_t read_into(self, char *room, Py_ssize_t size) except -1:
        """Plain text, one record at most: how much, 0 where there is none (`dry`) or will be none (`ended`)."""
        cdef Py_ssize_t count
        if self.dry or self.ended:
            return 0
        if self.failure is not None:
            error, self.failure = self.failure, None
            raise error
        size = min(size, <Py_ssize_t> MOST)
        try:
            if self.lends:
                count = call(self.data, "read", size, self.window.onto(room, size))
            else:
                count = self.read_copy(room, size)
        except _NOT_NOW:
            self.dry = True
            self.fed = min(self.fed, <Py_ssize_t> RECORD)  # what has arrived of a record is inside
            return 0
        self.look(count, size)
        return count

    cdef Py_ssize_t read_copy(self, char *room, Py_ssize_t size) except -1:
        """The same from an object that may keep what it is given."""
        cdef bytes data = call(self.data, "read", size, None) or b""
        if PyBytes_GET_SIZE(data) > size:
            raise ValueError(f"read({size}) of {self.data!r} returned {PyBytes_GET_SIZE(data)} bytes")
        memcpy(room, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
        return PyBytes_GET_SIZE(data)

    cdef int look(self, Py_ssize_t count, Py_ssize_t size) except -1:
        """What a read of up to `size` bytes has left, that gave `count`."""
        if count == 0:
            self.ended = True
        elif self.waiting() == 0 and (count < size or call(self.data, "pending", None, None) == 0):
            self.dry = True
            self.fed = 0
        else:
            self.fed = max(self.fed - count, <Py_ssize_t> SMALLEST)
        return 0

    cdef bytes read_one(self):
        """The plain text of what is one small record as a rule: ssl makes the bytes itself."""
        cdef Py_ssize_t size = self.fed
        cdef bytes data
        try:
            data = call(self.data, "read", size, None) or b""
        except _NOT_NOW:
            self.dry = True
            return b""
        self.look(PyBytes_GET_SIZE(data), size)
        return data

    cdef bytes read_all(self):
        """All the plain text there is by now. What went wrong behind it is raised by the next read."""
        cdef Py_ssize_t room = max(self.fed, <Py_ssize_t> SMALLEST), got = 0, count
        cdef PyObject *data
        cdef bytes first = None
        if self.dry or self.ended:
            return b""
        if self.fed <= RECORD and self.failure is None:
            first = self.read_one()
            if self.dry or self.ended:
                return first
            room = max(self.fed, <Py_ssize_t> SMALLEST)
        data = PyBytes_FromStringAndSize_raw(NULL, room)
        try:
            while True:
                count = self.read_into(PyBytes_AS_STRING(<bytes> data) + got, room - got)
                got += count
                if count == 0 or self.dry:
                    break
                if got == room:
                    room *= 2
                    _PyBytes_Resize(&data, room)
            if got < room:
                _PyBytes_Resize(&data, got)
        except Exception as error:
            if data is NULL or (got == 0 and first is None):
                Py_XDECREF(data)  # growing it failed, and has freed it, or there is nothing in it
                raise
            self.failure = error  # what came before it is good
            _PyBytes_Resize(&data, got)
        return <bytes> steal(data) if first is None else first + <bytes> steal(data)

    cdef int discard(self, char *room, Py_ssize_t size) except -1:
        """Read what nobody will want any more, up to the peer's close_notify."""
        try:
            while self.read_into(room, size) > 0:
                pass
        except _ZeroReturn:
            self.ended = True
        return 0

    cdef Py_ssize_t write(self, const char *data, Py_ssize_t size) except -1:
        """Encrypt: how much of it; 0 while the session has to hear from the peer first, and then has to be asked the
        same again."""
        cdef Py_ssize_t count
        try:
            if self.lends:
                return call(self.data, "write", self.window.over(data, size), None)
            count = call(self.data, "write", PyBytes_FromStringAndSize(data, size), None)
        except _NOT_NOW:
            return 0
        return max(0, min(count, size))

    cdef int close(self) except -1:
        """Let go of the session; what it had is gone."""
        self.tls = self.data = None
        self.incoming = self.outgoing = ssl.MemoryBIO()
        self.ended = True
        return 0

    cdef Py_ssize_t unsent(self) except -1:
        """Bytes of ciphertext to be taken."""
        return self.outgoing.pending

    cdef bytes take(self):
        """All the ciphertext there is to send."""
        return call(self.outgoing, "read", None, None)
