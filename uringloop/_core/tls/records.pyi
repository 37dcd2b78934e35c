from ssl import MemoryBIO, SSLObject
from typing import Self

class Window: ...

class Records:
    tls: SSLObject
    incoming: MemoryBIO | None
    outgoing: MemoryBIO | None
    ended: bool
    def __new__(cls, tls: SSLObject, incoming: MemoryBIO, outgoing: MemoryBIO) -> Self: ...
