from typing import final

from uringloop._core.engine.op import Op
from uringloop._core.loop.handle import Handle
from uringloop._core.loop.loop import Loop

@final
class Registration:
    fd: int
    reader: Handle | None
    writer: Handle | None

@final
class EpollSet(Op):
    registrations: dict[int, Registration]
    def __new__(cls, loop: Loop) -> EpollSet: ...
    def add(self, fd: int, write: bool, handle: Handle) -> Handle | None: ...
    def remove(self, fd: int, write: bool) -> Handle | None: ...
