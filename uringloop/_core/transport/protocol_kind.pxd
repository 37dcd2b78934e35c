cdef enum ProtocolKind:
    PROTOCOL_PLAIN       # data_received gets a bytes object
    PROTOCOL_STREAM      # asyncio's own for streams, with its own methods: its StreamReader is fed directly
    PROTOCOL_BUFFERED    # a BufferedProtocol: data goes into its own buffers
    PROTOCOL_SINK        # a compiled one, which takes data where it lies


cdef ProtocolKind kind_of(object protocol) except *
