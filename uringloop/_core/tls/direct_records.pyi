from ssl import MemoryBIO, SSLObject
from typing import Self

from uringloop._core.tls.records import Records

class DirectRecords(Records):
    def __new__(cls, tls: SSLObject, incoming: MemoryBIO, outgoing: MemoryBIO) -> Self: ...
