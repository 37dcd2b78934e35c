# Feeding asyncio's own StreamReader: what its StreamReaderProtocol.data_received does, without the three Python
# frames and the bytes object in between; most programs receive through it. Only for the stock classes with their
# stock methods: a subclass, or a replaced method, is called as ever. Owns nothing.
from asyncio import streams

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from libc.string cimport memcpy

cdef object _Protocol = streams.StreamReaderProtocol
cdef object _Reader = streams.StreamReader
cdef object _data_received = _Protocol.data_received
cdef object _feed_data = _Reader.feed_data
cdef object _wakeup_waiter = _Reader._wakeup_waiter


cdef bint can_feed(object protocol) except -1:
    """Does data for this protocol end in a stock StreamReader?"""
    if type(protocol) is not _Protocol or _Protocol.data_received is not _data_received:
        return False
    if _Reader.feed_data is not _feed_data or _Reader._wakeup_waiter is not _wakeup_waiter:
        return False
    reader = protocol._stream_reader
    return type(reader) is _Reader and type(reader._buffer) is bytearray


cdef int feed(object protocol, const char *data, Py_ssize_t length) except -1:
    """Append to the reader's buffer, wake who waits, and pause reading where there is too much."""
    cdef object reference = protocol._stream_reader_wr
    cdef object reader, buffer, waiter
    cdef Py_ssize_t size
    if reference is None:
        return 0
    reader = reference()
    if reader is None:
        return 0  # nobody will read: asyncio drops it too
    assert not reader._eof, "feed_data after feed_eof"
    buffer = reader._buffer
    size = PyByteArray_GET_SIZE(buffer)
    PyByteArray_Resize(buffer, size + length)
    memcpy(PyByteArray_AS_STRING(buffer) + size, data, length)
    waiter = reader._waiter
    if waiter is not None:
        reader._waiter = None
        if not waiter.cancelled():
            waiter.set_result(None)
    if size + length > 2 * <Py_ssize_t> reader._limit and reader._transport is not None and not reader._paused:
        reader._transport.pause_reading()
        reader._paused = True
    return 0
