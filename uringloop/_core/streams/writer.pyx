# Writing: compiled write() and drain() for asyncio's own StreamWriter. The stock writer that a server's protocol makes
# for a client is adopted, like its reader (reader.pyx): its class becomes a subclass with these two methods. Writers that
# a program makes itself stay as they are, because this file never sees them.
from asyncio import futures, streams

from uringloop._core.awaitables.coroutine cimport WAIT, Coroutine, resumed_early, returns_coroutine
from uringloop._core.cpython.attributes cimport attributes_of
from uringloop._core.cpython.class_exchange cimport exchange_class
from uringloop._core.lifetime.guard cimport ur_only_core_makes
from uringloop._core.streams.reader cimport is_adopted

cdef extern from *:
    """
    #include "lifetime/guard.h"
    UR_DEFINE_FREE_LIST(ur_drainings)
    """
    void ur_drainings_install(object type)

cdef object _Writer = streams.StreamWriter
cdef object _Reader = streams.StreamReader
cdef object _Protocol = streams.StreamReaderProtocol
cdef object _write = _Writer.write
cdef object _drain = _Writer.drain
cdef object _drain_helper = _Protocol._drain_helper
cdef object _connection_made = _Protocol.connection_made


cdef class Draining(Coroutine):
    """`drain()` of an adopted StreamWriter."""

    _called = "StreamWriter.drain"

    cdef object first(self):
        cdef object error
        if self.reader is not None:
            error = attributes_of(self.reader)["_exception"]
            if error is not None:
                raise error
        if self.transport.is_closing():
            # Wait for one turn, so that connection_lost() can be called: a program that writes and drains in a loop then
            # gets its exception.
            self.future = self.protocol._loop.create_future()
            self.protocol._loop.call_soon(futures._set_result_unless_cancelled, self.future, None)
            return WAIT
        return self.go_on()

    cdef object go_on(self):
        cdef dict attributes = attributes_of(self.protocol)
        if attributes["_connection_lost"]:
            raise ConnectionResetError("Connection lost")
        if not attributes["_paused"]:
            return None
        self.future = self.protocol._loop.create_future()
        self.protocol._drain_waiters.append(self.future)
        self.in_line = True
        return WAIT

    cdef object again(self):
        cdef object future = self.future
        if not future.done():
            resumed_early()
        if not self.in_line:
            return self.go_on()
        self.leave_line()
        return future.result()

    cdef int left(self) except -1:
        return self.leave_line()

    cdef int leave_line(self) except -1:
        if self.in_line:
            self.in_line = False
            self.protocol._drain_waiters.remove(self.future)
        return 0


def write(self, data):
    attributes_of(self)["_transport"].write(data)


def drain(self):
    """Wait until the write buffer is no longer too full. Raises the exception by which the connection was lost."""
    cdef Draining draining
    cdef dict attributes = attributes_of(self)
    cdef object protocol = attributes["_protocol"]
    cdef object reader = attributes["_reader"]
    if type(protocol) is not _Protocol or reader is not None and not is_adopted(reader) and type(reader) is not _Reader:
        return _drain(self)
    draining = Draining.__new__(Draining)
    draining.reader, draining.protocol, draining.transport = reader, protocol, attributes["_transport"]
    return draining


ur_drainings_install(<object> Draining)

write.__doc__ = _write.__doc__
write.__qualname__ = "StreamWriter.write"
drain.__qualname__ = "StreamWriter.drain"
returns_coroutine(drain)

cdef object _Adopted = type("StreamWriter", (_Writer,), {
    "__slots__": (), "__doc__": _Writer.__doc__, "__module__": _Writer.__module__, "write": write, "drain": drain,
})


cdef class Connected:
    """Wraps a server's client_connected_cb, and adopts the writer before it calls that."""

    def __call__(self, reader, writer):
        if type(writer) is _Writer:
            exchange_class(writer, _Adopted)
        return self.callback(reader, writer)


cdef int adopt_writer_of(object protocol) except -1:
    """Adopt the writer that a server's stock protocol will make for its client, unless the program has replaced methods of
    asyncio's classes."""
    cdef Connected connected
    cdef object callback = protocol._client_connected_cb
    if callback is None or type(callback) is Connected:
        return 0
    if (_Writer.write is not _write or _Writer.drain is not _drain or _Protocol._drain_helper is not _drain_helper
            or _Protocol.connection_made is not _connection_made):
        return 0
    connected = Connected.__new__(Connected)
    connected.callback = callback
    protocol._client_connected_cb = connected
    return 0


ur_only_core_makes(Draining)
ur_only_core_makes(Connected)
