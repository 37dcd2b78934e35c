from ssl import MemoryBIO, SSLContext, SSLObject

class Window: ...

class Records:
    tls: SSLObject
    incoming: MemoryBIO
    outgoing: MemoryBIO
    ended: bool
    def __init__(self, context: SSLContext, server_side: bool, server_hostname: str | None) -> None: ...
