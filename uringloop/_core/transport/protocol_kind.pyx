# ProtocolKind: the way in which a protocol takes data. A transport looks once, when it gets the protocol. Owns nothing.
from asyncio import protocols

from uringloop._core.streams.feed cimport can_feed
from uringloop._core.transport.transport cimport Sink

cdef object _BufferedProtocol = protocols.BufferedProtocol


cdef ProtocolKind kind_of(object protocol) except *:
    """The reader of a stock stream protocol, and the writer of a server's, are adopted by this."""
    if isinstance(protocol, Sink):
        return PROTOCOL_SINK
    if isinstance(protocol, _BufferedProtocol):
        return PROTOCOL_BUFFERED
    return PROTOCOL_STREAM if can_feed(protocol) else PROTOCOL_PLAIN
