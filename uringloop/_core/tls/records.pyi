from ssl import MemoryBIO, SSLContext, SSLObject
from typing import Self

class Window: ...

class Records:
    tls: SSLObject
    incoming: MemoryBIO
    outgoing: MemoryBIO
    ended: bool
    def __new__(cls, context: SSLContext, server_side: bool, server_hostname: str | None) -> Self: ...
