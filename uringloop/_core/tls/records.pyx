# Records: one TLS session between two memory buffers. It calls CPython's own ssl objects, with as few frames, copies and
# exceptions as possible. Owns the SSLObject and its MemoryBIOs. Knows no transport, no protocol and no state of the
# connection.
#
# A read without plain text raises SSLWantReadError, which costs as much as decrypting a small record. So it reads only if
# ciphertext has arrived since the last read, or is left: `dry` means that neither is the case.
from asyncio import sslproto

cimport cython

try:
    import _ssl
except ImportError:  # a Python without ssl
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
    RECORD = 18432  # the longest record, with all of its overhead
    SMALLEST = 256
    MOST = 1 << 30  # ssl's sizes are C ints

cdef object ssl = sslproto.ssl  # None in a Python without it
cdef tuple _NOT_NOW = (ssl.SSLWantReadError, ssl.SSLSyscallError) if ssl is not None else ()
# The compiled object releases a buffer before it returns. Others, such as a tracer's, may keep the buffer.
cdef object _Inner = _ssl._SSLSocket if ssl is not None else None
cdef object _ZeroReturn = ssl.SSLZeroReturnError if ssl is not None else ()
# As long as these methods are SSLObject's own, they only call the object inside.
cdef tuple _PLAIN = tuple(ssl.SSLObject.__dict__[name] for name in ("read", "write", "pending")) if ssl is not None else ()


cdef inline object call(object room, str name, object first, object second):
    """Call room.name(first, second); an argument that is None is left out."""
    cdef PyObject *stack[4]
    stack[1] = <PyObject *> room
    stack[2] = <PyObject *> first
    stack[3] = <PyObject *> second
    cdef size_t count = 3 if second is not None else 2 if first is not None else 1
    return PyObject_VectorcallMethod(name, &stack[1], count | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL)


cdef object _inside(object tls):
    """The object that `tls` passes reads and writes to; `tls` itself if it is not a plain SSLObject."""
    kind = type(tls)
    if tuple([getattr(kind, name, None) for name in ("read", "write", "pending")]) != _PLAIN:
        return tls
    inner = getattr(tls, "_sslobj", None)
    return inner if type(inner) is _Inner else tls


cdef class Window:
    cdef Window over(self, const char *start, Py_ssize_t size):
        """A window for reading from the memory."""
        self.start, self.size, self.writable = <char *> start, size, False
        return self

    cdef Window onto(self, char *start, Py_ssize_t size):
        """A window for writing to the memory."""
        self.start, self.size, self.writable = start, size, True
        return self

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.start, self.size, not self.writable, flags)


@cython.no_gc_clear  # what DirectRecords has lives as long as `data`
cdef class Records:
    def __cinit__(self, tls, incoming, outgoing):
        self.tls, self.incoming, self.outgoing = tls, incoming, outgoing
        self.data = _inside(tls)
        self.lends = type(self.data) is _Inner
        self.dry = True
        self.window = Window()

    cdef int feed(self, const char *data, Py_ssize_t length) except -1:
        """Copy ciphertext that has arrived."""
        if length == 0:
            return 0
        call(self.incoming, "write", self.window.over(data, length), None)
        self.fed += length
        self.dry = False
        return 0

    cdef int keep(self) except -1:
        """The memory that was fed is the caller's again."""
        return 0

    cdef Py_ssize_t waiting(self) except -1:
        """The number of bytes of ciphertext that were not processed yet."""
        return self.incoming.pending

    cdef Py_ssize_t read_into(self, char *room, Py_ssize_t size) except -1:
        """Read plain text of at most one record; return its size, 0 if there is none yet (`dry`) or no more (`ended`)."""
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
            self.fed = min(self.fed, <Py_ssize_t> RECORD)  # the session holds a partial record at most
            return 0
        self.look(count, size)
        return count

    cdef Py_ssize_t read_copy(self, char *room, Py_ssize_t size) except -1:
        """The same from an object that may keep the buffer."""
        cdef bytes data = call(self.data, "read", size, None) or b""
        if PyBytes_GET_SIZE(data) > size:
            raise ValueError(f"read({size}) of {self.data!r} returned {PyBytes_GET_SIZE(data)} bytes")
        memcpy(room, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
        return PyBytes_GET_SIZE(data)

    cdef int look(self, Py_ssize_t count, Py_ssize_t size) except -1:
        """Update the state after a read of up to `size` bytes that returned `count`."""
        if count == 0:
            self.ended = True
        elif self.waiting() == 0 and (count < size or call(self.data, "pending", None, None) == 0):
            self.dry = True
            self.fed = 0
        else:
            self.fed = max(self.fed - count, <Py_ssize_t> SMALLEST)
        return 0

    cdef bytes read_one(self):
        """The plain text of usually one small record: ssl makes the bytes object itself."""
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
        """All available plain text. If an error follows it, the next read raises that."""
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
                Py_XDECREF(data)  # NULL if growing it failed, which has freed it; otherwise it is empty
                raise
            self.failure = error  # the plain text before it is valid
            _PyBytes_Resize(&data, got)
        return <bytes> steal(data) if first is None else first + <bytes> steal(data)

    cdef int discard(self) except -1:
        """Read and discard plain text, up to the peer's close_notify."""
        cdef char room[4096]
        try:
            while self.read_into(room, sizeof(room)) > 0:
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
        """Drop the session, with its unread data."""
        self.tls = self.data = None
        self.incoming = self.outgoing = ssl.MemoryBIO()
        self.ended = True
        return 0

    cdef Py_ssize_t unsent(self) except -1:
        """The number of bytes of ciphertext to send."""
        return self.outgoing.pending

    cdef bytes take(self):
        """Take all the ciphertext to send."""
        return call(self.outgoing, "read", None, None)
