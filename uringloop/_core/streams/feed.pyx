# Feeding asyncio's own StreamReader: does the work of StreamReaderProtocol.data_received, without its three Python
# frames and the bytes object in between; most programs receive through it. Only for the stock classes with their
# stock methods: a subclass or a replaced method is called as usual. Owns nothing.
from asyncio import exceptions, streams

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.string cimport memcpy

from uringloop._core.cpython.attributes cimport attributes_of
from uringloop._core.streams.reader cimport Reading, adopt, is_adopted, reader_of
from uringloop._core.streams.writer cimport adopt_writer_of

cdef extern from *:
    """
    /* The object that a weak reference refers to, or None. */
    static inline PyObject *ur_referred(PyObject *reference) {
    #if PY_VERSION_HEX >= 0x030D0000
        PyObject *found;
        if (PyWeakref_GetRef(reference, &found) < 0) return NULL;
        if (found == NULL) { Py_INCREF(Py_None); return Py_None; }
        return found;
    #else
        PyObject *found = PyWeakref_GetObject(reference);
        Py_XINCREF(found);
        return found;
    #endif
    }
    """
    object referred "ur_referred"(object reference)

cdef object _Protocol = streams.StreamReaderProtocol
cdef object _Reader = streams.StreamReader
cdef object _data_received = _Protocol.data_received
cdef object _feed_data = _Reader.feed_data
cdef object _wakeup_waiter = _Reader._wakeup_waiter


cdef bint can_feed(object protocol) except -1:
    """Whether this protocol's data goes to a stock StreamReader. If so, adopts the reader, and a server's writer with it."""
    if type(protocol) is not _Protocol or _Protocol.data_received is not _data_received:
        return False
    if _Reader.feed_data is not _feed_data or _Reader._wakeup_waiter is not _wakeup_waiter:
        return False
    stream = protocol._stream_reader
    if stream is None or not adopt(stream):
        return False
    adopt_writer_of(protocol)
    return True


cdef int feed(object protocol, const char *data, Py_ssize_t length, bytes whole) except -1:
    """Append to the reader's buffer, wake the task that waits, and pause reading if the buffer is too full. `whole` is None,
    or the same data as an object, which may itself become the reader's result."""
    cdef object reference = attributes_of(protocol)["_stream_reader_wr"]
    cdef object stream, buffer, waiter
    cdef dict attributes
    cdef Reading reading = None
    cdef Py_ssize_t size
    if reference is None:
        return 0
    stream = referred(reference)
    if stream is None:
        return 0  # the reader is gone, so asyncio drops the data too
    if type(stream) is not _Reader and not is_adopted(stream):
        return feed_by_method(stream, data, length, whole)  # the program has replaced the reader
    attributes = attributes_of(stream)
    assert not attributes["_eof"], "feed_data after feed_eof"
    buffer = attributes["_buffer"]
    if type(buffer) is not bytearray:
        return feed_by_method(stream, data, length, whole)  # the program has replaced the buffer
    size = PyByteArray_GET_SIZE(buffer)
    waiter = attributes["_waiter"]
    if waiter is not None and is_adopted(stream):
        reading = reader_of(attributes).waiting
        if reading is not None and reading.future is not waiter:
            reading = None
    if reading is not None:
        if size == 0 and reading.fits(length):
            reading.chunk = PyBytes_FromStringAndSize(data, length) if whole is None else whole
            attributes["_waiter"] = None
            if wake(waiter):
                return 0
            reading.chunk = None
        elif reading.exactly and size + length < reading.wanted:
            # The result is the same as if we woke the task, which would look and wait again.
            return _append(buffer, size, data, length)
    _append(buffer, size, data, length)
    if waiter is not None:
        attributes["_waiter"] = None
        wake(waiter)
    if (size + length > 2 * <Py_ssize_t> attributes["_limit"] and attributes["_transport"] is not None
            and not attributes["_paused"]):
        attributes["_transport"].pause_reading()
        attributes["_paused"] = True
    return 0


cdef int feed_by_method(object stream, const char *data, Py_ssize_t length, bytes whole) except -1:
    stream.feed_data(PyBytes_FromStringAndSize(data, length) if whole is None else whole)
    return 0


cdef bint wake(object waiter) except -1:
    """False: the future was cancelled, which its task will see when it runs."""
    try:
        waiter.set_result(None)
    except exceptions.InvalidStateError:
        return False
    return True


cdef int _append(object buffer, Py_ssize_t size, const char *data, Py_ssize_t length) except -1:
    PyByteArray_Resize(buffer, size + length)
    memcpy(PyByteArray_AS_STRING(buffer) + size, data, length)
    return 0
