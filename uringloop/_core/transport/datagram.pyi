from asyncio import DatagramProtocol, Future
from asyncio import DatagramTransport as Interface
from socket import socket
from typing import Any, final

from uringloop._core.engine.op import Op

@final
class DatagramPoll(Op): ...

@final
class DatagramTransport(Interface):
    def is_reading(self) -> bool: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...

def make_datagram_transport(
    loop: Any,
    sock: socket,
    protocol: DatagramProtocol,
    address: Any,
    waiter: Future[None] | None,
    extra: dict[str, Any] | None,
    cvars: Any,
) -> DatagramTransport: ...
