from socket import socket

from uringloop._core.poll import PollOp

class IoRefs(int):
    closed: bool
    def unwatched(self) -> None: ...

def watch(poll: PollOp, sock: socket) -> None: ...
