from uringloop._core.handle import Handle
from uringloop._core.loop import Loop
from uringloop._core.op import Op

class Watched:
    fd: int
    reader: Handle | None
    writer: Handle | None

class EpollSet(Op):
    watched: dict[int, Watched]
    def __init__(self, loop: Loop) -> None: ...
    def add(self, fd: int, write: bool, handle: Handle) -> Handle | None: ...
    def remove(self, fd: int, write: bool) -> Handle | None: ...
    def close(self) -> None: ...
