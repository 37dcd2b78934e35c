import sys
from typing import final

@final
class FixedMemory:
    @property
    def length(self) -> int: ...
    @property
    def transfers(self) -> int: ...
    @property
    def registered(self) -> bool: ...

class FixedBuffer:
    @property
    def size(self) -> int: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...
