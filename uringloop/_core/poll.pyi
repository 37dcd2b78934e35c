from uringloop._core.handle import Handle
from uringloop._core.io_refs import IoRefs
from uringloop._core.loop import Loop
from uringloop._core.op import Op

class PollOp(Op):
    handle: Handle | None
    refs: IoRefs | None
    def __init__(self, loop: Loop, fd: int, write: bool, handle: Handle) -> None: ...
    def arm(self) -> None: ...
    def disarm(self) -> None: ...
