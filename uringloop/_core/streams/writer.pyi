from asyncio import StreamReader, StreamWriter
from typing import Any, final

from uringloop._core.awaitables.coroutine import Coroutine

@final
class Draining(Coroutine): ...

@final
class Connected:
    def __call__(self, reader: StreamReader, writer: StreamWriter) -> Any: ...

def write(self: StreamWriter, data: bytes) -> None: ...
def drain(self: StreamWriter) -> Draining: ...
