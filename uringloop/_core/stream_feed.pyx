# Feeding asyncio's own StreamReader: what its StreamReaderProtocol.data_received does, without the three Python
# frames and the bytes object in between; most programs receive through it. Only for the stock classes with their
# stock methods: a subclass, or a replaced method, is called as ever. Owns nothing.
from asyncio import streams

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcpy

from uringloop._core.stream_reader cimport Reading, adopt, is_adopted, reader_of
from uringloop._core.stream_writer cimport adopt_writer_of

cdef object _Protocol = streams.StreamReaderProtocol
cdef object _Reader = streams.StreamReader
cdef object _data_received = _Protocol.data_received
cdef object _feed_data = _Reader.feed_data
cdef object _wakeup_waiter = _Reader._wakeup_waiter


cdef bint can_feed(object protocol) except -1:
    """Does data for this protocol end in a stock StreamReader? That is then adopted, and a server's writer with it."""
    if type(protocol) is not _Protocol or _Protocol.data_received is not _data_received:
        return False
    if _Reader.feed_data is not _feed_data or _Reader._wakeup_waiter is not _wakeup_waiter:
        return False
    stream = protocol._stream_reader
    if stream is None or not adopt(stream):
        return False
    adopt_writer_of(protocol)
    return True


cdef int feed(object protocol, const char *data, Py_ssize_t length) except -1:
    """Append to the reader's buffer, wake who waits, and pause reading where there is too much."""
    return _feed(protocol, data, length, None)


cdef int feed_bytes(object protocol, bytes data) except -1:
    """The same with an object, which may become the reader's result as it is."""
    return _feed(protocol, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), data)


cdef int _feed(object protocol, const char *data, Py_ssize_t length, bytes whole) except -1:
    cdef object reference = protocol._stream_reader_wr
    cdef object stream, buffer, waiter
    cdef Reading reading = None
    cdef Py_ssize_t size
    if reference is None:
        return 0
    stream = reference()
    if stream is None:
        return 0  # nobody will read: asyncio drops it too
    assert not stream._eof, "feed_data after feed_eof"
    buffer = stream._buffer
    size = PyByteArray_GET_SIZE(buffer)
    waiter = stream._waiter
    if waiter is not None and is_adopted(stream):
        reading = reader_of(stream).waiting
        if reading is not None and reading.future is not waiter:
            reading = None
    if reading is not None:
        if size == 0 and reading.fits(length) and not waiter.done():
            reading.chunk = PyBytes_FromStringAndSize(data, length) if whole is None else whole
            stream._waiter = None
            waiter.set_result(None)
            return 0
        if reading.exactly and size + length < reading.wanted:
            # Waking it to look and wait again, and pausing until it does, would come to this.
            return _append(buffer, size, data, length)
    _append(buffer, size, data, length)
    if waiter is not None:
        stream._waiter = None
        if not waiter.cancelled():
            waiter.set_result(None)
    if size + length > 2 * <Py_ssize_t> stream._limit and stream._transport is not None and not stream._paused:
        stream._transport.pause_reading()
        stream._paused = True
    return 0


cdef int _append(object buffer, Py_ssize_t size, const char *data, Py_ssize_t length) except -1:
    PyByteArray_Resize(buffer, size + length)
    memcpy(PyByteArray_AS_STRING(buffer) + size, data, length)
    return 0
