from asyncio import DatagramProtocol, DatagramTransport as Interface, Future
from socket import socket
from typing import Any

class DatagramTransport(Interface): ...

def make_datagram_transport(
    loop: Any,
    sock: socket,
    protocol: DatagramProtocol,
    address: Any,
    waiter: Future[None] | None,
    extra: dict[str, Any] | None,
    cvars: Any,
) -> DatagramTransport: ...
