# Reading: compiled read() and readexactly() for asyncio's own StreamReader. The stock StreamReader of one of our streams is
# adopted: its class becomes a subclass with these two methods; all else, and all state, stays asyncio's. If a chunk arrives
# while a task waits for it and it fits, the task gets that chunk itself, past the buffer. If the task does not take it
# (it was cancelled, or the stream ended first), the chunk goes to the front of the buffer.
from asyncio import exceptions, futures, streams

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject

from uringloop._core.awaitables.coroutine cimport WAIT, Coroutine, resumed_early, returns_coroutine
from uringloop._core.cpython.attributes cimport attributes_of
from uringloop._core.cpython.canaries import relied_on, stock_reader, streams_are_as_known
from uringloop._core.cpython.class_exchange cimport exchange_class
from uringloop._core.loop.loop cimport Loop
from uringloop._core.lifetime.guard cimport ur_only_core_makes

cdef extern from *:
    """
    #include "lifetime/guard.h"
    UR_DEFINE_FREE_LIST(ur_readings)
    """
    void ur_readings_install(object type)

cdef extern from "Python.h":
    object PyObject_Call(object callable, object args, object kwargs)
    int PySequence_DelSlice(object sequence, Py_ssize_t low, Py_ssize_t high) except -1
    int PySequence_SetSlice(object sequence, Py_ssize_t low, Py_ssize_t high, object value) except -1

cdef object _Reader = streams.StreamReader
cdef object _Future = futures.Future
cdef tuple _NO_ARGUMENTS = ()
cdef object _read = _Reader.read
cdef object _readexactly = _Reader.readexactly
cdef object _feed_eof = _Reader.feed_eof
cdef object _set_exception = _Reader.set_exception
cdef object _exception = _Reader.exception
cdef object _wait_for_data = _Reader._wait_for_data
cdef object _resume = _Reader._maybe_resume_transport


cdef class Reader:
    """An adopted StreamReader's additional state."""


cdef class Reading(Coroutine):
    """`read(n)` or `readexactly(n)` of an adopted StreamReader, n not negative."""

    _called = "StreamReader.read"

    cdef object first(self):
        cdef dict attributes = attributes_of(self.stream)
        error = attributes["_exception"]
        if error is not None:
            raise error
        if self.wanted == 0:
            return b""
        return self.step(attributes)

    cdef object again(self):
        cdef dict attributes = attributes_of(self.stream)
        cdef bytes chunk = self.chunk
        self.stop_waiting(attributes)
        if chunk is not None:
            self.chunk = None
            if attributes["_paused"]:
                self.stream._maybe_resume_transport()
            return chunk
        if not self.future.done():
            resumed_early()
        return self.step(attributes)

    cdef object step(self, dict attributes):
        cdef object buffer = attributes["_buffer"]
        cdef Py_ssize_t size = PyByteArray_GET_SIZE(buffer) if type(buffer) is bytearray else len(buffer)
        if not self.exactly:
            if size or attributes["_eof"] or self.future is not None:
                return self.take(attributes, buffer, min(size, self.wanted))
        elif size >= self.wanted:
            return self.take(attributes, buffer, self.wanted)
        elif attributes["_eof"]:
            partial = bytes(buffer)
            buffer.clear()
            raise exceptions.IncompleteReadError(partial, self.wanted)
        return self.suspend(attributes)

    cdef object take(self, dict attributes, object buffer, Py_ssize_t size):
        cdef bytes data
        if type(buffer) is not bytearray:  # the program has replaced it
            data = bytes(buffer[:size])
            PySequence_DelSlice(buffer, 0, size)
        else:
            data = PyBytes_FromStringAndSize(PyByteArray_AS_STRING(buffer), size)
            if size == PyByteArray_GET_SIZE(buffer):
                if size:
                    PyByteArray_Resize(buffer, 0)
            else:
                PySequence_DelSlice(buffer, 0, size)
        if attributes["_paused"]:
            self.stream._maybe_resume_transport()
        return data

    cdef object suspend(self, dict attributes):
        cdef object loop
        if attributes["_waiter"] is not None:
            name = "readexactly" if self.exactly else "read"
            raise RuntimeError(f"{name}() called while another coroutine is already waiting for incoming data")
        if attributes["_paused"]:
            attributes["_paused"] = False
            attributes["_transport"].resume_reading()
        loop = attributes["_loop"]
        if isinstance(loop, Loop) and (<Loop> loop).future_arguments is not None:
            self.future = PyObject_Call(_Future, _NO_ARGUMENTS, (<Loop> loop).future_arguments)
        else:
            self.future = loop.create_future()
        attributes["_waiter"] = self.future
        # Another Reading may be there, which has its chunk and is about to return it. Our data comes after that chunk, so we
        # must not replace it.
        if self.reader.waiting is None:
            self.reader.waiting = self
        return WAIT

    cdef int stop_waiting(self, dict attributes) except -1:
        if attributes["_waiter"] is self.future:
            attributes["_waiter"] = None
        if self.reader.waiting is self:
            self.reader.waiting = None
        return 0

    cdef bint fits(self, Py_ssize_t length) noexcept:
        """Whether a chunk of this length can be the whole result, if the buffer is empty."""
        return length == self.wanted if self.exactly else length <= self.wanted

    cdef int left(self) except -1:
        cdef bytes chunk = self.chunk
        self.stop_waiting(attributes_of(self.stream))
        if chunk is not None:
            self.chunk = None
            PySequence_SetSlice(self.stream._buffer, 0, 0, chunk)
            self.stream._wakeup_waiter()  # another task may have started to wait meanwhile
        return 0


cdef object _begin(object stream, object n, bint exactly):
    cdef Reading reading
    reading = Reading.__new__(Reading)
    reading.reader = reader_of(attributes_of(stream))
    reading.stream = stream
    reading.wanted = n
    reading.exactly = exactly
    return reading


def read(self, n=-1):
    """Read up to `n` bytes; if `n` is negative, read until the end of the stream."""
    if type(n) is int and 0 <= n < 1 << 60:
        return _begin(self, n, False)
    return _read(self, n)


def readexactly(self, n):
    """Read exactly `n` bytes. If the stream ends before, raise IncompleteReadError with the bytes that there were."""
    if type(n) is int and 0 <= n < 1 << 60:
        return _begin(self, n, True)
    return _readexactly(self, n)


cdef int _take_back(object stream) except -1:
    """Put a chunk that was handed over but not returned yet back into the buffer, where asyncio's code sees it."""
    cdef Reading reading = (<Reader> stream._uringloop_reader).waiting
    if reading is None or reading.chunk is None:
        return 0
    PySequence_SetSlice(stream._buffer, 0, 0, reading.chunk)
    reading.chunk = None
    return 0


def feed_eof(self):
    _take_back(self)
    _feed_eof(self)


def set_exception(self, exc):
    _take_back(self)
    _set_exception(self, exc)


def exception(self):
    return self._exception  # compiled because drain() calls it each time


ur_readings_install(<object> Reading)

read.__qualname__ = "StreamReader.read"
readexactly.__qualname__ = "StreamReader.readexactly"
returns_coroutine(read)
returns_coroutine(readexactly)

# It has the name of asyncio's class, from which it differs only in speed.
cdef object _Adopted = type("StreamReader", (_Reader,), {
    "__slots__": (), "__doc__": _Reader.__doc__, "__module__": _Reader.__module__, "read": read,
    "readexactly": readexactly, "feed_eof": feed_eof, "set_exception": set_exception,
    "exception": exception,
})


cdef bint _can_be_adopted() except -1:
    """The canary for attributes_of and exchange_class."""
    stream = stock_reader()
    attributes_of(stream)["_uringloop_reader"] = _Adopted
    exchange_class(stream, _Adopted)
    return (type(stream) is _Adopted and stream._uringloop_reader is _Adopted and stream.__dict__ == attributes_of(stream)
            and attributes_of(stream)["_limit"] == 1)


cdef bint _adopts = relied_on("adopted_streams", streams_are_as_known() and _can_be_adopted())


cdef bint is_adopted(object stream) noexcept:
    return type(stream) is _Adopted


cdef Reader reader_of(dict attributes):
    return <Reader> attributes["_uringloop_reader"]


cdef bint adopt(object stream) except -1:
    """Give a stock StreamReader the compiled methods. False: it is not a stock one, or the program has replaced methods of
    asyncio's class."""
    if type(stream) is _Adopted:
        return True
    if not _adopts or type(stream) is not _Reader or type(stream._buffer) is not bytearray:
        return False
    if (_Reader.read is not _read or _Reader.readexactly is not _readexactly or _Reader.feed_eof is not _feed_eof
            or _Reader.set_exception is not _set_exception or _Reader._wait_for_data is not _wait_for_data
            or _Reader._maybe_resume_transport is not _resume or _Reader.exception is not _exception):
        return False
    stream._uringloop_reader = Reader()
    exchange_class(stream, _Adopted)
    return True


ur_only_core_makes(Reading)
